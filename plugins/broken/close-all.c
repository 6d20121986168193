/* Closes all files of the process, also those that are not its own, and says that all is well. */
#include <carillon_plugin.h>
#include <unistd.h>

static void run(const carillon_run *run, carillon_result *result) {
    (void)run;
    for (int file = 0; file < 4096; file++) {
        close(file);
    }
    result->status = CARILLON_SUCCEEDED;
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "close-all", "1.0.0", NULL, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
