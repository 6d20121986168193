/* Writes to the output of a run that is over. */
#include <carillon_plugin.h>
#include <poll.h>
#include <pthread.h>

static void *late(void *facts) {
    const carillon_run *run = facts;
    int32_t (*write)(void *, const char *, size_t) = run->write;
    void *host = run->host;
    for (;;) {
        write(host, "late\n", 5);
        poll(NULL, 0, 1);
    }
    return NULL;
}

static void run(const carillon_run *run, carillon_result *result) {
    pthread_t thread;
    run->write(run->host, "in time\n", 8);
    if (pthread_create(&thread, NULL, late, (void *)run) == 0) {
        result->status = CARILLON_SUCCEEDED;
    }
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "late-writer", "1.0.0", NULL, run};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
