import Foundation
import Synchronization

extension ZonekeeperConfiguration {
    /// The configuration in force: that of `use(_:)`, else the environment's; nil if there is none, or a wrong one.
    public static var current: ZonekeeperConfiguration? { try? needed() }

    /// Puts a configuration in force for `CKContainer.default()` and the preferences; nil goes back to the
    /// environment's.
    ///
    /// Where it speaks for another account, or of another place, than the one before,
    /// `Notification.Name("CKAccountChangedNotification")` is posted, on the calling thread. What goes through the
    /// default container from then on speaks for the new account.
    public static func use(_ configuration: ZonekeeperConfiguration?) {
        let before = current?.identity
        let chosen = configuration.map(Held.init)
        Chosen.state.withLock { $0.configuration = chosen }
        if before != current?.identity { AccountObservation.tell(.configured) }
    }

    /// The configuration in force.
    /// - Throws: an error that says what is missing or wrong, and where.
    package static func needed() throws(ServiceClientError) -> ZonekeeperConfiguration {
        // Read once: the environment of a process does not change, and a file is not to be read for each container.
        if let held = Chosen.state.withLock({ $0.configuration ?? $0.fromEnvironment }) { return try held.checked() }
        let read = try ZonekeeperConfiguration.read(ProcessInfo.processInfo.environment)
        Chosen.state.withLock { $0.fromEnvironment = Held(read) }
        return read
    }

    /// A configuration as an object. Optimised builds of Swift 6.3 made a wrong value of a global's optional struct of this
    /// size that was nil; a reference is right.
    private final class Held: Sendable {
        private let configuration: ZonekeeperConfiguration
        init(_ configuration: ZonekeeperConfiguration) { self.configuration = configuration }
        func checked() throws(ServiceClientError) -> ZonekeeperConfiguration { try configuration.checked() }
    }

    private enum Chosen {
        struct State {
            var configuration: Held?
            var fromEnvironment: Held?
        }

        static let state = Mutex(State())
    }

    /// Hears of changes of the account until the observation is let go of.
    package static func observeAccount(_ body: @escaping @Sendable (AccountChange) -> Void) -> AccountObservation {
        AccountObservation(body)
    }
}

/// What happened to the account that this process speaks for.
package enum AccountChange: Sendable {
    /// Another configuration is in force.
    case configured
    /// The server does not take a session's token any more.
    case signedOut(ServiceSession)
    /// The server takes it again: another program has put a new one into the session's file.
    case signedIn(ServiceSession)
}

/// Hears of changes of the account as long as it lives.
package final class AccountObservation: Sendable {
    private let number: Int

    private struct Observers {
        var bodies: [(number: Int, body: @Sendable (AccountChange) -> Void)] = []
        var next = 0
    }

    private static let observers = Mutex(Observers())

    init(_ body: @escaping @Sendable (AccountChange) -> Void) {
        number = Self.observers.withLock { observers in
            observers.next += 1
            observers.bodies.append((observers.next, body))
            return observers.next
        }
    }

    deinit { cancel() }

    /// Nothing is heard after this, but what is on its way.
    package func cancel() {
        Self.observers.withLock { [number] observers in observers.bodies.removeAll { $0.number == number } }
    }

    /// Tells everybody, in the order in which they began, then the notification centre.
    static func tell(_ change: AccountChange) {
        for (_, body) in observers.withLock(\.bodies) { body(change) }
        NotificationCenter.default.post(name: Notification.Name("CKAccountChangedNotification"), object: nil)
    }
}
