/* Does not export carillon_plugin_init. */
#include <carillon_plugin.h>

const carillon_plugin *carillon_plugin_begin(uint32_t host_abi_version);

const carillon_plugin *carillon_plugin_begin(uint32_t host_abi_version) {
    (void)host_abi_version;
    return NULL;
}
