import Synchronization

/// A configuration that was checked once, and its session: what whoever speaks for an account holds on to.
///
/// A class: what is asked of it a thousand times a second is neither copied nor checked again.
package final class ServiceAccount: Sendable {
    /// With its URLs in their usual form, unless one of them is none.
    package let configuration: ZonekeeperConfiguration
    private let fault: ServiceClientError?
    private let held = Mutex<ServiceSession?>(nil)

    package init(_ configuration: ZonekeeperConfiguration) {
        do throws(ServiceClientError) {
            self.configuration = try configuration.checked()
            fault = nil
        } catch {
            self.configuration = configuration
            fault = error
        }
    }

    /// The configuration.
    /// - Throws: what is wrong in it.
    package func checked() throws(ServiceClientError) -> ZonekeeperConfiguration {
        if let fault { throw fault }
        return configuration
    }

    /// The account's session, which everybody in the process shares who speaks for it.
    /// - Throws: if the configuration, or the authority's file, cannot be used.
    package func session() throws(ServiceClientError) -> ServiceSession {
        if let session = held.withLock({ $0 }) { return session }
        let session = try ServiceSession.of(checked: try checked())
        held.withLock { $0 = session }
        return session
    }
}

extension ServiceAccount: Hashable {
    package static func == (left: ServiceAccount, right: ServiceAccount) -> Bool {
        left === right || left.configuration == right.configuration
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(configuration) }
}
