import Admission
import Authorization
import Cluster
import Directory
import RecordModel
import Service

/// One request at a node: what WebServices makes of HTTP, without the HTTP. Everything that decides is the node's own
/// service.
final class Visit: @unchecked Sendable {
    // Touched on the simulation's thread only.
    let service: RecordService
    let deadline: Deadline
    private let recorder: Recorder
    private let session: UserSession
    /// What the answer carries beside its body.
    private(set) var notes = RequestNotes()

    init(_ service: RecordService, _ recorder: Recorder, as session: UserSession) {
        self.service = service
        self.recorder = recorder
        self.session = session
        deadline = service.node.deadline()
    }

    var node: ClusterNode { service.node }

    /// What the request shows of who sends it.
    var credentials: Credentials { session.credentials(service.signer) }

    func met(_ situation: Situation) { recorder.met(situation) }

    /// Has the service admit the request, and works on it.
    func enter<Value>(
        rate: RateKind = .requests, _ work: (AdmittedRequest) async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        let scope = RequestScope(target: Place.target, rate: rate)
        let context: AdmittedRequest
        do throws(RequestFailure) {
            let credentials = session.credentials(service.signer)
            let precheck = try await service.identification.precheck(credentials, for: scope, address: nil)
            context = try await service.admit(credentials, precheck, to: scope, address: nil, by: deadline, &notes)
        } catch {
            if let rate = notes.rate, error.error.code == .throttled { recorder.wasThrottled(rate.kind) }
            throw error
        }
        recorder.wasAccepted(rate)
        defer { service.leave(scope) }
        return try await work(context)
    }

    /// Takes a place among a container's requests, without a rate, and works on the request.
    func enterAsAdministrator<Value>(
        of container: String, _ work: (DirectorySnapshot) async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        let scope = RequestScope(
            target: Target(container: container, environment: .development, needsUser: false), rate: .requests)
        var credentials = Credentials(apiToken: nil, webAuthToken: nil)
        credentials.administrator = "simulation"
        let precheck = try await service.identification.precheck(credentials, for: scope, address: nil)
        let context = try await service.admit(credentials, precheck, to: scope, address: nil, by: deadline, &notes)
        defer { service.leave(scope) }
        return try await work(context.directory)
    }

    /// Works on a request for the records of the first account.
    func database<Value>(
        _ identity: Identity? = nil, _ work: (DatabaseRequest) async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        try await enter { context throws(RequestFailure) in
            var request = DatabaseRequest(
                service, key: Place.database, requester: Requester(context.admitted, requestID: "", address: nil),
                in: context.directory, deadline: deadline)
            if let identity {
                request.identity = try RequestIdentity(identity.key, body: identity.body, in: service)
            }
            return try await work(request)
        }
    }

    /// Works on a request for preferences.
    func preferences<Value>(
        of account: String, _ work: (Preferences) async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        try await enter(rate: .keyValues) { _ throws(RequestFailure) in
            try await work(Preferences(service, Place.store(account)))
        }
    }

    /// An `Idempotency-Key`, and the body that it stands for.
    struct Identity: Sendable {
        var key: String
        var body: [UInt8]
    }
}
