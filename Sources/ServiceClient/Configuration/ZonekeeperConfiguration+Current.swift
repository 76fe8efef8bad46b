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
        ServiceAccount.putInForce(configuration.map { ServiceAccount($0) })
        if before != current?.identity { AccountObservation.tell(.configured) }
    }

    /// The configuration in force.
    /// - Throws: an error that says what is missing or wrong, and where.
    package static func needed() throws(ServiceClientError) -> ZonekeeperConfiguration {
        try ServiceAccount.inForce().checked()
    }

    /// Hears of changes of the account until the observation is let go of.
    package static func observeAccount(_ body: @escaping @Sendable (AccountChange) -> Void) -> AccountObservation {
        AccountObservation(body)
    }
}

extension ServiceAccount {
    // Objects, and not values: optimised builds of Swift 6.3 made a wrong value of a global's optional struct of a
    // configuration's size that was nil; a reference is right.
    private struct Chosen {
        var account: ServiceAccount?
        var fromEnvironment: ServiceAccount?
    }

    private static let chosen = Mutex(Chosen())

    /// The account of the configuration in force.
    /// - Throws: an error that says what is missing, and where.
    package static func inForce() throws(ServiceClientError) -> ServiceAccount {
        // Read once: the environment of a process does not change, and a file is not to be read for each container.
        if let account = chosen.withLock({ $0.account ?? $0.fromEnvironment }) { return account }
        let read = ServiceAccount(try ZonekeeperConfiguration.read(ProcessInfo.processInfo.environment))
        return chosen.withLock { chosen in
            let account = chosen.fromEnvironment ?? read
            chosen.fromEnvironment = account
            return account
        }
    }

    fileprivate static func putInForce(_ account: ServiceAccount?) {
        // What is let go of here ends outside of the lock.
        let before = chosen.withLock { chosen in
            defer { chosen.account = account }
            return chosen.account
        }
        _ = before
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
