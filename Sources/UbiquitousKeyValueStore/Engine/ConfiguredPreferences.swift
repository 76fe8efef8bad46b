import Foundation
import ServiceClient
import Synchronization

/// The session and the place that a configuration gives preferences.
struct ConfiguredPreferences {
    /// Nil without a user.
    private var service: (any PreferenceService)?
    private var place: PreferencePlace

    private init(_ session: ServiceSession) {
        service = session.hasUser ? SessionPreferenceService(session) : nil
        place = PreferencePlace(
            container: session.configuration.container, environment: session.configuration.environment.rawValue,
            variables: ProcessInfo.processInfo.environment)
    }

    private init(place: PreferencePlace) { self.place = place }

    /// Those of the configuration in force.
    private static func current() -> ConfiguredPreferences {
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

    private var engine: PreferenceEngine {
        PreferenceEngine(place: place, service: service, dependencies: .init(makeBatchID: { IdempotencyKeys.make() }))
    }

    /// The store of the configuration in force. It follows changes of the configuration.
    static func engine() -> PreferenceEngine {
        let situation = current()
        let engine = situation.engine
        let observation = ZonekeeperConfiguration.observeAccount { [weak engine] change in
            switch change {
            case .configured, .signedIn: if let engine { current().use(in: engine) }
            // The copy stays as it is. If the same user signs in again, work goes on with it.
            case .signedOut: engine?.unconfirm()
            }
        }
        engine.state.withLock { $0.observation = observation }
        // The configuration may have changed before the observation began.
        let now = current()
        if now.service?.name != situation.service?.name || now.place != situation.place { now.use(in: engine) }
        return engine
    }

    /// The store of one configuration, whichever is in force: for programs that act for several users.
    /// - Parameter folder: where its copies are; nil for the folder that `engine` would use.
    static func engine(
        of configuration: ZonekeeperConfiguration, folder: String? = nil
    ) throws(ServiceClientError) -> PreferenceEngine {
        var configured = ConfiguredPreferences(try ServiceSession.of(configuration))
        if let folder { configured.place = PreferencePlace(folder: folder) }
        return configured.engine
    }

    /// Not on the caller's thread, which may hold a lock that the change needs.
    private func use(in engine: PreferenceEngine) {
        engine.queue.async { [service, place] in engine.use(service, at: place) }
    }
}
