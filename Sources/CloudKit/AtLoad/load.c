#include "CloudKitAtLoad.h"

// In Swift, beside the names of the classes.
extern void zonekeeper_cloudkit_name_classes(void) __attribute__((weak));

// Foundation looks for the class of a name in an archive before any code of the framework runs, so the names have to
// be known from the start. Swift has no such function of its own.
__attribute__((constructor)) static void at_load(void) {
    if (zonekeeper_cloudkit_name_classes) zonekeeper_cloudkit_name_classes();
}
