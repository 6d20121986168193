/* Has a params schema that is JSON, and no JSON Schema. */
#include <carillon_plugin.h>

static void run(const carillon_run *run, carillon_result *result) {
    (void)run;
    result->status = CARILLON_SUCCEEDED;
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "bad-schema", "1.0.0", "{\"type\": \"strin\"}", run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
