/* Fails with a message that is not UTF-8. */
#include <carillon_plugin.h>
#include <stdio.h>

static void run(const carillon_run *run, carillon_result *result) {
    static const char garbage[] = "no \xff\xfe luck\xc3\n";
    run->write(run->host, garbage, sizeof garbage - 1);
    snprintf(result->message, result->message_capacity, "no \xff\xfe luck\xc3");
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "garbled-message", "1.0.0", NULL, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
