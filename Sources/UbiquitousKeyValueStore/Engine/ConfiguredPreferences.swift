import Foundation
import ServiceClient
import Synchronization

extension PreferenceEngine {
    /// The store of the configuration in force. It follows changes of the configuration.
    static func configured() -> PreferenceEngine {
        let situation = ConfiguredPreferences.current()
        let engine = PreferenceEngine(
            place: situation.place, service: situation.service, dependencies: .init { IdempotencyKeys.make() })
        let observation = ZonekeeperConfiguration.observeAccount { [weak engine] change in
            engine?.configurationChanged(change)
        }
        engine.state.withLock { $0.observation = observation }
        // The configuration may have changed before the observation began.
        let now = ConfiguredPreferences.current()
        if now.service?.name != situation.service?.name || now.place != situation.place {
            engine.queue.async { engine.use(now.service, at: now.place) }
        }
        return engine
    }

    /// The store of one configuration, whichever is in force: for programs that act for several users.
    /// - Parameter folder: where its copies are; nil for the folder that `configured` would use.
    static func of(
        _ configuration: ZonekeeperConfiguration, folder: String? = nil
    ) throws(ServiceClientError) -> PreferenceEngine {
        let configured = ConfiguredPreferences(try ServiceSession.of(configuration))
        return PreferenceEngine(
            place: folder.map { PreferencePlace(folder: $0) } ?? configured.place, service: configured.service,
            dependencies: .init { IdempotencyKeys.make() })
    }

    private func configurationChanged(_ change: AccountChange) {
        switch change {
        case .configured, .signedIn:
            let now = ConfiguredPreferences.current()
            // Not on the caller's thread, which may hold a lock that the change needs.
            queue.async { [self] in use(now.service, at: now.place) }
        // The copy stays as it is. If the same user signs in again, work goes on with it.
        case .signedOut: state.withLock { $0.isConfirmed = false }
        }
    }
}

/// The session and the place that a configuration gives preferences.
private struct ConfiguredPreferences {
    /// Nil without a user.
    var service: (any PreferenceService)?
    var place: PreferencePlace

    init(_ session: ServiceSession) {
        service = session.hasUser ? SessionPreferenceService(session) : nil
        place = PreferencePlace(
            container: session.configuration.container, environment: session.configuration.environment.rawValue,
            variables: ProcessInfo.processInfo.environment)
    }

    private init(place: PreferencePlace) { self.place = place }

    /// Those of the configuration in force.
    static func current() -> ConfiguredPreferences {
        // Each program without a configuration has a place of its own on this device.
        let unconfigured = PreferencePlace(
            container: ProcessInfo.processInfo.processName, environment: "unconfigured",
            variables: ProcessInfo.processInfo.environment)
        do throws(ServiceClientError) {
            var configured = ConfiguredPreferences(try ServiceSession.current())
            configured.place.unconfiguredFolder = unconfigured.folder
            return configured
        } catch {
            return ConfiguredPreferences(place: unconfigured)
        }
    }
}
