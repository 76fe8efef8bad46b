#include "os_module.h"
