/*
 * Carillon plugins, ABI version 1.
 *
 * A plugin is one shared library that exports one function, carillon_plugin_init. Carillon copies the file, loads the
 * copy in a process for this plugin alone (or, if it is told to trust the plugin, in the server itself), calls
 * carillon_plugin_init, and then calls `run` of what that returned, once for each run of a job, on many threads at a
 * time. Include this header; there is nothing to link against.
 *
 * Rules that hold everywhere below:
 *
 *  - Strings are UTF-8 and end in a NUL, unless a length stands beside them. They are never NULL unless it says so.
 *  - What a pointer points to belongs to the side that made it, which alone frees it. Nothing that one side allocated
 *    is ever freed by the other.
 *  - No C++ exception, no longjmp and no Rust panic may cross into Carillon; one that does ends the process, and
 *    every run that goes on in it fails.
 *  - The process is shared by many runs, or is the server: its working directory, environment, signals and limits, stdout
 *    and stderr belong to all of them. Change none of them, and expect nothing there: what is about the run is in
 *    carillon_run. What is printed goes to the server's log. Close only what you opened.
 *  - SIGURG is Carillon's: it interrupts what a run waits for when that is to stop. SIGPIPE is ignored. Leave both.
 *  - Every struct carries its size, as the side that filled it was compiled, except carillon_env, which never changes.
 *    New fields are only ever appended. A field at or beyond that size is not there. Reserved fields are 0 and are not
 *    to be looked at.
 *  - abi_version changes only if that is not enough. Carillon refuses a plugin with another one.
 */
#ifndef CARILLON_PLUGIN_H
#define CARILLON_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CARILLON_ABI_VERSION 1u

/* How a run ended. Any other value is taken for CARILLON_FAILED. */
#define CARILLON_SUCCEEDED 0
#define CARILLON_FAILED 1

/* A variable for the run. Both belong to Carillon and live as long as the carillon_run that leads here. */
typedef struct carillon_env {
    const char *name;
    const char *value;
} carillon_env;

/*
 * The facts of one run. Carillon makes it, and everything that it points to; all of that is constant, may be read from
 * any thread, and lives until `run` returns, not longer: copy what you keep.
 */
typedef struct carillon_run {
    uint32_t struct_size;
    /* 1 for the first attempt at this firing. */
    uint32_t attempt;
    /* 1 to 128 of [A-Za-z0-9._-] each, here and in `job`. */
    const char *job_namespace;
    const char *job;
    /* Unique among all runs of all jobs. */
    const char *run_id;
    /*
     * The instant at which the firing was due, in milliseconds since 1970-01-01T00:00:00Z. Together with job_namespace
     * and job it identifies the firing: every attempt at it has the same three.
     */
    int64_t due_at_ms;
    /* When the run will be stopped, on the same clock; 0 for never. */
    int64_t deadline_ms;
    /* Grows with every start of the job. Hand it to what you write to, so that it can refuse a smaller one. */
    uint64_t fencing_token;
    /* The job's params as JSON text. They fit params_schema. */
    const char *params_json;
    /* An array of env_count variables; NULL if there are none. They are not the variables of the process. */
    const carillon_env *env;
    uint32_t env_count;
    uint32_t reserved;
    /* Belongs to Carillon. Hand it to the callbacks unchanged; do not look into it. */
    void *host;
    /*
     * Appends bytes to the run's output, in the order of the calls. `data` belongs to the caller and is not kept; it may
     * be NULL if `length` is 0. Returns 0, or an errno value if the bytes, or some of them, could not be written. May be
     * called from any thread, from several at a time, until `run` returns. May block while the reader is slow.
     */
    int32_t (*write)(void *host, const char *data, size_t length);
    /*
     * Not 0 once the run is to stop: somebody cancelled it, or its time is over. Stays so. What has not returned when
     * the job's kill_grace has passed is killed with its process, so other runs of the plugin suffer too; in the server
     * it cannot be killed, and goes on. May be called from any thread until `run` returns; never blocks; cheap enough to
     * ask in a loop. System calls that wait (sleep, poll, read) return EINTR, on the thread that `run` was called on, when
     * it changes.
     */
    int32_t (*cancelled)(void *host);
} carillon_run;

/*
 * How a run ended. Carillon makes it and sets it to failure; it belongs to `run` until that returns. To be written by
 * one thread at a time.
 */
typedef struct carillon_result {
    uint32_t struct_size;
    /* CARILLON_SUCCEEDED or CARILLON_FAILED. */
    int32_t status;
    /* For people and for the history, where there is such a number: 1 to 255. 0 becomes 1 in a run that failed. */
    int32_t exit_code;
    /* Bytes that fit into `message`, its NUL included; at least 1024. */
    uint32_t message_capacity;
    /*
     * A sentence for people: why it failed. A buffer that belongs to Carillon, all NUL at first; write into it, e.g. with
     * snprintf(result->message, result->message_capacity, ...), and do not replace the pointer.
     */
    char *message;
} carillon_result;

/*
 * What the plugin is. The plugin makes it, usually as a static constant; it, and all that it points to, must not change
 * and must live as long as the process.
 */
typedef struct carillon_plugin {
    /* CARILLON_ABI_VERSION. This and the next field stay where they are in every version. */
    uint32_t abi_version;
    uint32_t struct_size;
    /* What a job's `executor` says: 1 to 128 of [A-Za-z0-9._-]. */
    const char *name;
    /* The plugin's own version, for people. */
    const char *version;
    /*
     * A JSON Schema (draft 2020-12 unless its $schema says otherwise) of the job's params, so that bad ones are refused
     * when the job is saved; NULL for any object.
     */
    const char *params_schema;
    /*
     * Executes one run and returns when it is over. `run` and `result` belong to Carillon; see above. Called on threads
     * that Carillon made, with 8 MiB of stack, on several at a time; one thread may see many runs, one after another.
     * Threads that it started must not use `run` or `result` after it has returned, and must have ended by then: a run
     * that leaves one behind fails, where it can be told that it was this run, and its process is replaced. The process
     * ends without destructors or atexit functions.
     */
    void (*run)(const carillon_run *run, carillon_result *result);
} carillon_plugin;

#if defined(_WIN32)
#define CARILLON_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define CARILLON_EXPORT __attribute__((visibility("default")))
#else
#define CARILLON_EXPORT
#endif

/*
 * The one function that a plugin exports. Called before anything else, once in each process that loads the library (one to
 * look at it, those that run it), on the main thread of a process of its own and on any of the server. It should only return
 * its constant. `host_abi_version` is the version that Carillon
 * speaks. The result belongs to the plugin; NULL means that it cannot work with such a Carillon.
 */
CARILLON_EXPORT const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif

#endif
