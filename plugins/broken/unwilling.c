/* Says that it cannot work with any Carillon. */
#include <carillon_plugin.h>

const carillon_plugin *carillon_plugin_init(uint32_t host_abi_version) {
    (void)host_abi_version;
    return NULL;
}
