import ServiceClient

/// Which container is meant, and with whose account it is reached.
///
/// The default container, and those known by their name, follow the configuration in force: when the app puts another
/// user's in force, they speak for that user from then on, as on a device whose account changes.
enum ContainerAccount: Sendable, Hashable {
    /// The container of the configuration in force, which has to be of this name where there is one.
    case current(identifier: String?)
    /// Always this configuration's.
    case fixed(ZonekeeperConfiguration)

    /// The container's name; nil where nothing is configured.
    var identifier: String? {
        switch self {
        case .current(let identifier): identifier ?? ZonekeeperConfiguration.current?.container
        case .fixed(let configuration): configuration.container
        }
    }

    /// The configuration to use now.
    /// - Throws: `badContainer` that says what is missing, or that another container is configured.
    func configuration() throws(CKError) -> ZonekeeperConfiguration {
        guard case .current(let identifier) = self else {
            guard case .fixed(let configuration) = self else { preconditionFailure("there are two cases") }
            return configuration
        }
        let configuration: ZonekeeperConfiguration
        do throws(ServiceClientError) {
            configuration = try ZonekeeperConfiguration.needed()
        } catch {
            throw ErrorMapping(container: identifier).error(error)
        }
        if let identifier, identifier != configuration.container {
            throw CKError(
                .badContainer,
                reason:
                    "this app is configured for the container '\(configuration.container)', not for '\(identifier)': "
                    + "use CKContainer(configuration:) to reach another",
                details: CKErrorDetails(containerID: identifier))
        }
        return configuration
    }

    /// The session of the account.
    func session() throws(CKError) -> (session: ServiceSession, configuration: ZonekeeperConfiguration) {
        let configuration = try configuration()
        do throws(ServiceClientError) {
            return (try ServiceSession.of(configuration), configuration)
        } catch {
            throw ErrorMapping(container: configuration.container).error(error)
        }
    }
}
