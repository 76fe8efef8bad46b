import ServiceClient

/// Which container is meant, and with whose account it is reached.
///
/// The default container, and those known by their name, follow the configuration in force: when the app puts another
/// user's in force, they speak for that user from then on, as on a device whose account changes.
enum ContainerAccount: Sendable, Hashable {
    /// The container of the configuration in force, which has to be of this name where there is one.
    case current(identifier: String?)
    /// Always this account's.
    case fixed(ServiceAccount)

    /// The container's name; nil where nothing is configured.
    var identifier: String? {
        switch self {
        case .current(let identifier): identifier ?? ZonekeeperConfiguration.current?.container
        case .fixed(let account): account.configuration.container
        }
    }

    /// The configuration to use now.
    /// - Throws: `badContainer` that says what is missing or wrong, or that another container is configured.
    func configuration() throws(CKError) -> ZonekeeperConfiguration {
        let account = try account()
        do throws(ServiceClientError) {
            return try account.checked()
        } catch {
            throw ErrorMapping(container: identifier).error(error)
        }
    }

    /// The session of the account, and its configuration.
    func session() throws(CKError) -> (session: ServiceSession, configuration: ZonekeeperConfiguration) {
        let account = try account()
        do throws(ServiceClientError) {
            return (try account.session(), account.configuration)
        } catch {
            throw ErrorMapping(container: account.configuration.container).error(error)
        }
    }

    private func account() throws(CKError) -> ServiceAccount {
        guard case .current(let identifier) = self else {
            guard case .fixed(let account) = self else { preconditionFailure("there are two cases") }
            return account
        }
        let account: ServiceAccount
        do throws(ServiceClientError) {
            account = try ServiceAccount.inForce()
        } catch {
            throw ErrorMapping(container: identifier).error(error)
        }
        if let identifier, identifier != account.configuration.container {
            throw CKError(
                .badContainer,
                reason:
                    "this app is configured for the container '\(account.configuration.container)', not for '\(identifier)': "
                    + "use CKContainer(configuration:) to reach another",
                details: CKErrorDetails(containerID: identifier))
        }
        return account
    }
}
