#include "consolefiles.h"

#include <zlib.h>

// `#embed` puts the files into the binary as they are, at no cost of compilation.
#pragma clang diagnostic ignored "-Wc23-extensions"

#define JOIN(left, right) left##right
#define NAME(line) JOIN(bytes_, line)

// First the bytes of each file, under the name that its line in files.h gives it: each FILE ends the array before it.
#define FILE(path) }; static const unsigned char NAME(__LINE__)[] = {
#define BYTES_MAX 0x7fffffff
__attribute__((unused)) static const unsigned char first[] = { 0
#include "files.h"
};
#undef FILE
#undef BYTES_MAX

// Then the table of them; nothing is embedded again.
#define FILE(path) { path, NAME(__LINE__), sizeof NAME(__LINE__) },
#define BYTES_MAX 0
static const struct console_file files[] = {
#include "files.h"
};

size_t console_file_count(void) { return sizeof files / sizeof files[0]; }

struct console_file console_file_at(size_t index) { return files[index]; }

size_t console_gzip(const unsigned char *bytes, size_t size, unsigned char *packed, size_t packed_size_max) {
    z_stream stream = {0};
    // 15 bits of window, and 16 for the form of gzip.
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) { return 0; }
    stream.next_in = (unsigned char *)bytes;
    stream.avail_in = (unsigned int)size;
    stream.next_out = packed;
    stream.avail_out = (unsigned int)packed_size_max;
    int result = deflate(&stream, Z_FINISH);
    size_t written = packed_size_max - stream.avail_out;
    deflateEnd(&stream);
    return result == Z_STREAM_END ? written : 0;
}
