#pragma once

#include <stddef.h>

/// One file of the console, valid as long as the process lives.
struct console_file {
    /// Below `Web`, such as `core/api.js`.
    const char *path;
    const unsigned char *bytes;
    size_t size;
};

/// How many files the console has.
size_t console_file_count(void);

/// The file of that number, which is below `console_file_count()`.
struct console_file console_file_at(size_t index);

/// Packs bytes, less than 4 GiB of them, in the form of gzip.
///
/// Returns how many bytes that took; 0 where they are more than `packed_size_max`, or there is no memory.
size_t console_gzip(const unsigned char *bytes, size_t size, unsigned char *packed, size_t packed_size_max);
