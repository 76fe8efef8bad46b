import Glibc

/// A thread of the system's, outside the pool of Swift's tasks, so that it may block on the disk.
package struct SystemThread: Sendable {
    private let handle: pthread_t

    /// Starts a thread.
    package init(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Body(body))
        var handle = pthread_t()
        let code = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, box.toOpaque())
        precondition(code == 0, "pthread_create failed with \(code)")
        self.handle = handle
    }

    /// Waits for the end of the thread; call it once, never from the thread itself.
    package func join() { pthread_join(handle, nil) }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
