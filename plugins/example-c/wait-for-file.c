/*
 * A Carillon plugin in C99: the executor "wait-for-file". A run of it succeeds as soon as a file is there, so that a job
 * can begin when another program has left its mark. How long it waits is the job's `timeout`.
 *
 * It shows all that a plugin has to do: say what it is, read its params, write output, fail with a sentence, and stop when
 * it is asked to. README.md beside it says how to build and use it; carillon_plugin.h says who owns what.
 */
#define _POSIX_C_SOURCE 200809L

#include <carillon_plugin.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LOOK_EVERY_MS 50

/*
 * Bad params are refused when the job is saved. The pattern leaves out what JSON would have to escape, so that the text of
 * the path in params_json is the path itself, and no JSON library is needed here.
 */
static const char schema[] =
    "{\"type\": \"object\","
    " \"properties\": {\"path\": {\"type\": \"string\", \"maxLength\": 1000,"
    "   \"pattern\": \"^/[^\\\"\\\\\\\\\\\\x00-\\\\x1f\\\\x7f]*$\", \"description\": \"the file to wait for\"}},"
    " \"required\": [\"path\"], \"additionalProperties\": false}";

/* Writes a line to the run's output. What cannot be written is no reason to fail here. */
static void say(const carillon_run *run, const char *format, ...) {
    char line[4200];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (length > 0 && (size_t)length < sizeof line) {
        run->write(run->host, line, (size_t)length);
    }
}

/* Fails the run with a sentence. `result` is failure already; only the sentence is missing. */
static void fail(carillon_result *result, const char *sentence, const char *detail) {
    snprintf(result->message, result->message_capacity, "%s%s", sentence, detail);
}

/* Copies the path out of {"path": "..."}. The schema leaves nothing else to be found; 0 if it is not so all the same. */
static int read_path(const char *params, char *path, size_t capacity) {
    const char *at = strstr(params, "\"path\"");
    if (at == NULL) {
        return 0;
    }
    at += strlen("\"path\"");
    at += strspn(at, " \t\r\n:");
    if (*at != '"') {
        return 0;
    }
    at++;
    size_t length = strcspn(at, "\"");
    if (at[length] != '"' || length >= capacity) {
        return 0;
    }
    memcpy(path, at, length);
    path[length] = '\0';
    return 1;
}

/*
 * One run. There are no variables outside of it: several runs may be going on at a time, each on a thread of its own.
 * Everything that `run` points to is gone when this returns.
 */
static void wait_for_file(const carillon_run *run, carillon_result *result) {
    char path[4097]; /* 1000 characters of up to four bytes, and a NUL */
    if (!read_path(run->params_json, path, sizeof path)) {
        fail(result, "params.path cannot be read", "");
        return;
    }
    say(run, "attempt %" PRIu32 " of %s/%s waits for %s\n", run->attempt, run->job_namespace, run->job, path);
    const struct timespec pause = {0, LOOK_EVERY_MS * 1000000L};
    for (;;) {
        struct stat found;
        if (stat(path, &found) == 0) {
            say(run, "it is there, with %lld bytes\n", (long long)found.st_size);
            result->status = CARILLON_SUCCEEDED;
            return;
        }
        if (errno != ENOENT && errno != ENOTDIR) {
            fail(result, "the file cannot be looked for: ", strerror(errno));
            result->exit_code = 2;
            return;
        }
        /* Cancelled, or out of time. What does not return now is killed when the job's kill_grace is over. */
        if (run->cancelled(run->host)) {
            fail(result, "asked to stop before there was a file ", path);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

/* What the plugin is. It must not change, and must live as long as the process. */
static const carillon_plugin plugin = {
    CARILLON_ABI_VERSION, sizeof plugin, "wait-for-file", "1.0.0", schema, wait_for_file,
};

/* The one function that Carillon looks for. It is called to look at the plugin too, so it does nothing else. */
const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return &plugin;
}
