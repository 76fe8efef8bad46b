#include "openapi.h"

// `#embed` puts the file into the binary as it is, at no cost of compilation.
#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char document[] = {
#embed "openapi.json"
};

const unsigned char *openapi_document(void) { return document; }

size_t openapi_document_size(void) { return sizeof document; }
