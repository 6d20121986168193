/* Eats memory until there is none, and does not look whether it got any. A limit of its own stands in for the machine's
 * end, which a test must not reach. */
#include <carillon_plugin.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PIECE (16 << 20)

static void run(const carillon_run *run, carillon_result *result) {
    const struct rlimit limit = {256 << 20, 256 << 20};
    (void)run;
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        return;
    }
    for (;;) {
        char *piece = malloc(PIECE);
        for (size_t at = 0; at < PIECE; at += 4096) {
            *(volatile char *)(piece + at) = 1;
        }
        result->status = CARILLON_SUCCEEDED;
    }
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "memory-hog", "1.0.0", NULL, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
