/* Makes a mess of the verdict: numbers that mean nothing, a message without an end, and a pointer of its own. */
#include <carillon_plugin.h>
#include <string.h>

static void run(const carillon_run *run, carillon_result *result) {
    (void)run;
    memset(result->message, 'x', result->message_capacity);
    result->struct_size = 0;
    result->status = 77;
    result->exit_code = -4000;
    result->message_capacity = 0xffffffffu;
    result->message = (char *)1;
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "torn-verdict", "1.0.0", NULL, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
