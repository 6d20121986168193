/* Leaves a thread behind when its run is over. */
#include <carillon_plugin.h>
#include <pthread.h>
#include <unistd.h>

static void *left(void *nothing) {
    for (;;) {
        pause();
    }
    return nothing;
}

static void run(const carillon_run *run, carillon_result *result) {
    pthread_t thread;
    (void)run;
    if (pthread_create(&thread, NULL, left, NULL) == 0) {
        result->status = CARILLON_SUCCEEDED;
    }
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "thread-left", "1.0.0", NULL, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
