/* Describes itself with less than the ABI has. */
#include <carillon_plugin.h>

static void run(const carillon_run *run, carillon_result *result) {
    (void)run;
    result->status = CARILLON_SUCCEEDED;
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, 8, "short-descriptor", "1.0.0", NULL, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
