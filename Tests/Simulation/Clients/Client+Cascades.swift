import Admission
import Authorization
import Cluster
import RecordModel
import Service

// What goes along with a deletion in a default zone, which is not atomic: a job takes it away later.
extension Client {
    /// Deletes a record that another one refers to, and saves a third one that refers to the name by the same request:
    /// what refers to the name since then stays.
    func deleteWithCascade() async {
        let user = "_deleter\(number)x\(notebookSerial)"
        let (type, owner) = (notebook.type, Notebook.owner)
        let round = newValue()
        let (target, former, later) = ("\(round)-target", "\(round)-former", "\(round)-later")
        func save(_ name: String, refersTo target: String?) -> String {
            let fields = target.map { #""\#(owner)":{"value":{"recordName":"\#($0)","action":"DELETE_SELF"}}"# } ?? ""
            return
                #"{"operationType":"forceReplace","record":"#
                + #"{"recordName":"\#(name)","recordType":"\#(type)","fields":{\#(fields)}}}"#
        }
        let deletion = #"{"operationType":"forceDelete","record":{"recordName":"\#(target)"}}"#
        guard await modify(as: user, [save(target, refersTo: nil), save(former, refersTo: target)]),
            await modify(as: user, [deletion, save(later, refersTo: target)])
        else { return }
        for _ in 0..<10 where !isEnding {
            guard let present = await present([former, later], as: user) else { return }
            guard present.contains(later) else {
                return recorder.violated(
                    "client \(number): record \(later) went with \(target), which was deleted before it referred to it")
            }
            guard present.contains(former) else { return }
            await sleep(world.milliseconds(200...2_000))
        }
    }

    private func request<Value: Sendable>(
        as user: String, _ identity: Visit.Identity? = nil,
        _ work: @escaping @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> Value
    ) async -> Value? {
        let database = DatabaseKey(
            container: Place.container, environment: .development, scope: .private, owner: user)
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let requester = Requester(Admitted(caller: Caller(user: user)), requestID: "", address: nil)
            var request = DatabaseRequest(
                visit.service, key: database, requester: requester, in: visit.service.node.directory.snapshot,
                deadline: visit.deadline)
            if let identity {
                request.identity = try RequestIdentity(identity.key, body: identity.body, in: visit.service)
            }
            return try await work(visit, request)
        }
        switch answer {
        case .answered(let value, _): return value
        case .failed(let failure): recorder.violated("client \(number) as \(user) is refused: \(failure.error)")
        case .nothing: break
        }
        return nil
    }

    /// - Returns: whether all of it is known to be done.
    private func modify(as user: String, _ operations: [String]) async -> Bool {
        let body = Array(#"{"operations":[\#(operations.joined(separator: ","))]}"#.utf8)
        let result = await request(as: user, Visit.Identity(key: newKey(), body: body)) {
            visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
        guard let result else { return false }
        for item in result.items {
            guard case .failed(let error, _) = item.outcome else { continue }
            recorder.violated("client \(number) as \(user): a change of \(item.recordName) is refused: \(error)")
            return false
        }
        return true
    }

    /// Which of these records are there; nil where that is not known.
    private func present(_ names: [String], as user: String) async -> Set<String>? {
        let list = names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ",")
        let body = Array(#"{"records":[\#(list)]}"#.utf8)
        let page = await request(as: user) { visit, request throws(RequestFailure) in
            try await RecordQueries(request).lookUp(try LookupRecordsRequest(sent: body))
        }
        guard let page, let elements = (try? JSONParser.parse(page.records))?.array else { return nil }
        return Set(elements.filter { $0["serverErrorCode"] == nil }.compactMap { $0["recordName"]?.string })
    }
}
