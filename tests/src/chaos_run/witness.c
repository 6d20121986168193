/*
 * The executor "witness" of chaos runs: a run writes its own life into a file, a line a write, as the commands of the other jobs do.
 * Its params are {"fails":0 or 1,"file":PATH,"pause_ms":N,"steps":N}, in this order and without blanks.
 */
#define _POSIX_C_SOURCE 200809L

#include <carillon_plugin.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* One line in one write, so that lines of other runs do not tear it. */
static int say(const carillon_run *run, int file, const char *what) {
    time_t second = (time_t)(run->due_at_ms / 1000);
    struct tm due;
    gmtime_r(&second, &due);
    char at[40], line[700];
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &due);
    int length = snprintf(line, sizeof line, "%s %s %s.%03dZ %" PRIu32 " %" PRIu64 " %s %" PRId64 "\n", run->run_id, run->job, at,
                          (int)(run->due_at_ms % 1000), run->attempt, run->fencing_token, what, now_us());
    return length > 0 && (size_t)length < sizeof line && write(file, line, (size_t)length) == length;
}

/* Waits for a time; whether the run may go on. */
static int rest(const carillon_run *run, int pause_ms) {
    for (int64_t end = now_us() + (int64_t)pause_ms * 1000; now_us() < end;) {
        if (run->cancelled(run->host)) {
            return 0;
        }
        const struct timespec moment = {0, 5 * 1000000L};
        nanosleep(&moment, NULL);
    }
    return !run->cancelled(run->host);
}

static void live(const carillon_run *run, carillon_result *result) {
    char path[1000];
    int steps, pause_ms, fails;
    if (sscanf(run->params_json, "{\"fails\":%d,\"file\":\"%999[^\"]\",\"pause_ms\":%d,\"steps\":%d}", &fails, path, &pause_ms, &steps) != 4) {
        snprintf(result->message, result->message_capacity, "the params are others: %s", run->params_json);
        return;
    }
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) {
        snprintf(result->message, result->message_capacity, "%s cannot be opened", path);
        return;
    }
    int goes_on = say(run, file, "start");
    for (int step = 0; goes_on && step < steps; step++) {
        goes_on = rest(run, pause_ms) && say(run, file, "alive");
    }
    if (goes_on) {
        result->exit_code = fails && now_us() / 1000 % 3 == 0 ? 3 : 0;
        goes_on = say(run, file, result->exit_code ? "end:3" : "end:0");
    }
    if (goes_on && result->exit_code == 0) {
        result->status = CARILLON_SUCCEEDED;
    } else {
        snprintf(result->message, result->message_capacity, goes_on ? "it fails now and then" : "it was asked to stop");
    }
    close(file);
}

static const carillon_plugin plugin = {CARILLON_ABI_VERSION, sizeof plugin, "witness", "1.0.0", NULL, live};

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
