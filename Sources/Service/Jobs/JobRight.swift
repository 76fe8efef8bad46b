import Admission
import Authorization
import Cluster
import Directory
import RecordModel

/// By what right a job goes on: its administrator's role, or their time as a user. It is judged at each step.
struct JobRight: Sendable {
    private let access: AdministratorAccess
    private let acting: ActingCredential?

    init(_ access: AdministratorAccess, as acting: ActingCredential?) {
        self.access = access
        self.acting = acting
    }

    /// The job's request for its database, as the one whom `admitted` let in.
    static func request(
        of job: Job, by context: AdmittedRequest, _ origin: AuditOrigin, in service: RecordService
    ) -> DatabaseRequest {
        let schema = SchemaKey(container: job.container, environment: job.environment)
        return DatabaseRequest(
            key: DatabaseKey(job.database, of: context.admitted.caller, in: schema),
            requester: Requester(context.admitted, requestID: origin.requestID, address: origin.address),
            in: context.directory, deadline: service.deadline())
    }

    /// Who works, by the directory as it is now.
    /// - Throws: `ACCESS_DENIED` where the administrator's role, or their time as a user, does not allow it any more;
    ///   `NOT_FOUND` where the container was deleted.
    func admitted(
        by service: RecordService, to job: Job, writes: Bool
    ) async throws(RequestFailure) -> AdmittedRequest {
        if let acting {
            let target = Target(
                container: job.container, environment: job.environment, needsUser: job.database != .public)
            return try await acting.admitted(by: service, to: target, writes: writes)
        }
        guard job.database == .public else {
            throw .accessDenied(
                "private data is its user's: begin a time as that user (`zonekeeper act-as start`), and name it")
        }
        try await ask(await service.node.requireDirectory())
        let directory = service.directory
        try ConsoleAccess(service).access(named: access.name, session: access.session).require(
            AdministratorNeed(writes ? .developer : .viewer, .container), container: job.container,
            environment: job.environment, now: service.now)
        try relay(directory.requireContainer(job.container))
        var admitted = Admitted(caller: .administrator)
        admitted.administrator = access.actor
        return AdmittedRequest(admitted: admitted, directory: directory)
    }
}
