import Foundation
package import ServiceClient
import Synchronization

extension PreferenceEngine {
    /// The store of the configuration in force, also when that changes.
    static func configured() -> PreferenceEngine {
        let (service, place) = situation()
        let engine = PreferenceEngine(
            place: place, service: service, surroundings: Surroundings { IdempotencyKeys.make() })
        let observation = ZonekeeperConfiguration.observeAccount { [weak engine] change in engine?.hear(change) }
        engine.state.withLock { $0.observation = observation }
        // What changed before it was heard of.
        let now = situation()
        if now.0?.name != service?.name || now.1 != place { engine.queue.async { engine.use(now.0, at: now.1) } }
        return engine
    }

    /// The store of one configuration, whichever is in force: for programs that speak for several users.
    /// - Parameter folder: where its copies are; nil is where `configured` would have them.
    package static func of(
        _ configuration: ZonekeeperConfiguration, folder: String? = nil
    ) throws(ServiceClientError) -> PreferenceEngine {
        let session = try ServiceSession.of(configuration)
        let place = folder.map { PreferencePlace(folder: $0) } ?? place(of: session.configuration)
        return PreferenceEngine(
            place: place, service: session.hasUser ? SessionPreferenceService(session) : nil,
            surroundings: Surroundings { IdempotencyKeys.make() })
    }

    /// The session and the place of the configuration in force.
    private static func situation() -> ((any PreferenceService)?, PreferencePlace) {
        do throws(ServiceClientError) {
            let session = try ServiceSession.current()
            var place = place(of: session.configuration)
            place.unconfiguredFolder = unconfigured.folder
            return (session.hasUser ? SessionPreferenceService(session) : nil, place)
        } catch {
            // Programs without a configuration each have a place of their own on this device.
            return (nil, unconfigured)
        }
    }

    private static var unconfigured: PreferencePlace {
        PreferencePlace(
            container: ProcessInfo.processInfo.processName, environment: "unconfigured", variables: variables)
    }

    private static func place(of configuration: ZonekeeperConfiguration) -> PreferencePlace {
        PreferencePlace(
            container: configuration.container, environment: configuration.environment.rawValue, variables: variables)
    }

    private static var variables: [String: String] { ProcessInfo.processInfo.environment }

    private func hear(_ change: AccountChange) {
        switch change {
        case .configured, .signedIn:
            let (service, place) = Self.situation()
            // Not on the thread of whoever changed it, which may hold what the change needs.
            queue.async { [self] in use(service, at: place) }
        // The copy stays as it is: signing in again goes on with it, if it is the same user who does.
        case .signedOut: state.withLock { $0.isConfirmed = false }
        }
    }
}
