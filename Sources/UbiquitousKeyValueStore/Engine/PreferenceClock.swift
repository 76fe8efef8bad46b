package import Dispatch

/// The time, and being called at a later one.
package protocol PreferenceClock: Sendable {
    /// Milliseconds of a clock that does not jump.
    var now: Int64 { get }
    /// Calls `body` on the queue, not before so many milliseconds from now.
    func after(_ milliseconds: Int64, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void)
}

/// The machine's clock.
package struct SystemPreferenceClock: PreferenceClock {
    package init() {}

    package var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

    package func after(_ milliseconds: Int64, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(milliseconds)), execute: body)
    }
}
