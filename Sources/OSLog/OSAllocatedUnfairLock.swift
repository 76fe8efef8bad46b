import Synchronization

/// A lock around a value, as `os` has it; `Mutex` is the language's own.
public struct OSAllocatedUnfairLock<State>: Sendable {
    // The mutex holds what the lock's user says may go from one thread to another.
    private final class Storage: Sendable {
        let mutex: Mutex<State>

        init(_ state: consuming sending State) { mutex = Mutex(state) }
    }

    private let storage: Storage

    /// A lock around a value that may be used on any thread.
    public init(initialState: State) where State: Sendable { storage = Storage(initialState) }

    /// Does something with the value while no other thread can.
    public func withLock<Value: Sendable>(
        _ body: @Sendable (inout State) throws -> Value
    ) rethrows -> Value where State: Sendable {
        try storage.mutex.withLock { state in try body(&state) }
    }

    /// Does something with the value, if no other thread does; nil otherwise.
    public func withLockIfAvailable<Value: Sendable>(
        _ body: @Sendable (inout State) throws -> Value
    ) rethrows -> Value? where State: Sendable {
        try storage.mutex.withLockIfAvailable { state in try body(&state) }
    }
}

extension OSAllocatedUnfairLock where State == Void {
    /// A lock around nothing.
    public init() { self.init(initialState: ()) }

    /// Does something while no other thread holds the lock.
    public func withLock<Value: Sendable>(_ body: @Sendable () throws -> Value) rethrows -> Value {
        try withLock { _ in try body() }
    }
}
