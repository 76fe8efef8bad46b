#pragma once

#include <stddef.h>

/// The bytes of `openapi.json`, valid as long as the process lives.
const unsigned char *openapi_document(void);

/// How many bytes it has.
size_t openapi_document_size(void);
