// Names of Apple's begin with the framework's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// A module that has symbols of its own would break packages that find it by `canImport(os)` and do not link it: see
// DESIGN.md. So all here are other names, and functions that go into their callers.

@_exported public import OSLog

#if canImport(Glibc)
    @_exported public import Glibc
#elseif canImport(Musl)
    @_exported public import Musl
#endif

/// The system's lock for one thread at a time; `os_unfair_lock()` is one that is open.
public typealias os_unfair_lock = pthread_mutex_t
/// The name of the type in C.
public typealias os_unfair_lock_s = pthread_mutex_t
/// Where a lock lies.
public typealias os_unfair_lock_t = UnsafeMutablePointer<os_unfair_lock>

/// Waits until no other thread holds the lock, and takes it.
@_alwaysEmitIntoClient
public func os_unfair_lock_lock(_ lock: os_unfair_lock_t) { pthread_mutex_lock(lock) }

/// Takes the lock, unless another thread holds it.
@_alwaysEmitIntoClient
public func os_unfair_lock_trylock(_ lock: os_unfair_lock_t) -> Bool { pthread_mutex_trylock(lock) == 0 }

/// Gives the lock back.
@_alwaysEmitIntoClient
public func os_unfair_lock_unlock(_ lock: os_unfair_lock_t) { pthread_mutex_unlock(lock) }
