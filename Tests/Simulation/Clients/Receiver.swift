import Admission
import Cluster
import Directory
import HistoryChecks
import RecordModel
import Service

/// A server that a webhook tells of public records. It is away now and then, its answers get lost, and it knows repeats
/// by their ids, as the documentation has it.
final class Receiver: @unchecked Sendable {
    // Touched on the simulation's thread only.
    static let name = "mirror"
    static let types = [Place.type, Place.memo, Place.diary, Place.report]
    static let fields = [Place.valueField, Place.numberField]
    static let subscriptions = types.map { type in
        NotificationTwin.Subscription(
            id: type, kind: .query, isPublic: true, type: type, events: Set(WatchedHistory.Event.allCases),
            looks: NotificationForm(flags: ["shouldSendContentAvailable"], fields: fields))
    }

    fileprivate let world: World
    /// Whether notifications may be lost, as too many waited.
    private let mayLose: Bool
    /// Whether everything arrives, and is answered.
    var isReliable = false
    /// Does something to the node that has just delivered something, and says for how long it waits for the answer.
    var disturb: (_ node: Int) -> UInt64? = { _ in nil }
    /// Has nothing private.
    private var twin = NotificationTwin(user: "")
    private var notices: [NotificationTwin.Notice] = []
    private var complaints: [String] = []
    /// Whether it was told that something was lost: what it has says nothing of what it lacks then.
    private(set) var isAtLoss = false
    /// What each of them told.
    private var deliveries: [String: [JSONValue]] = [:]
    private var last: String?
    private var acknowledged: Set<String> = []
    /// What was shown under each number.
    private var shown: [Int64: [UInt8]] = [:]
    /// As they were shown when they were made, the newest first; deliveries are signed with each that is in use.
    var secrets: [String] = []
    /// Until when its answers get lost.
    private var lossUntil: UInt64 = 0
    /// The time of the deliveries' signatures, in seconds since 1970, may be wrong.
    var mayTimeBeWrong: () -> Bool = { false }

    init(world: World, mayLose: Bool) {
        self.world = world
        self.mayLose = mayLose
    }

    /// The webhook tells of what is committed from now on.
    func begins(called: Int, returned: Int) {
        // A container's servers may be told of all but what creators alone may read.
        twin.unreadable = []
        for subscription in Self.subscriptions {
            twin.saved(subscription, called: called, returned: returned, isRepeated: false)
        }
    }

    /// What is wrong with what it was told.
    /// - Parameter isOver: whether nothing is on its way any more.
    func faults(by history: WatchedHistory, isOver: Bool) -> [String] {
        if !complaints.isEmpty || isAtLoss { return complaints }
        return twin.faults(in: notices, history, device: nil, isOver: isOver)
    }

    /// - Returns: the status that it answers.
    fileprivate func take(_ request: WebhookRequest) throws(WebhookFailure) -> Int {
        if !isReliable, world.chance(15) { throw WebhookFailure("it cannot be reached") }
        if !isReliable, world.chance(10) { return 503 }
        guard let json = try? JSONParser.parse(request.body), let id = json["id"]?.string,
            let list = json["notifications"]?.array
        else {
            complaints.append("no delivery: \(String(decoding: request.body, as: UTF8.self))")
            return 400
        }
        complaints += faults(of: request, json, id)
        if json["lost"] == .bool(true), !isAtLoss {
            isAtLoss = true
            world.met(.toldOfLoss)
            if !mayLose { complaints.append("delivery \(id) tells of a loss, and nothing was lost") }
        }
        if !isAtLoss { take(id, list) }
        // For some time in a row, too, in which more happens that is to be told.
        if !isReliable, world.chance(8) { lossUntil = world.now + world.milliseconds(0...40_000) }
        if !isReliable, world.now <= lossUntil { throw WebhookFailure("its answer is lost") }
        acknowledged.insert(id)
        return 200
    }

    /// What is wrong with what a delivery says beside its notifications, and with its signature.
    private func faults(of request: WebhookRequest, _ json: JSONValue, _ id: String) -> [String] {
        var said: [String: JSONValue] = [
            "id": .string(id), "container": .string(Place.container), "environment": .string("development"),
            "webhook": .string(Self.name), "notifications": json["notifications"] ?? .null,
        ]
        if let lost = json["lost"] { said["lost"] = lost }
        let expected = JSONValue.object(said.map { .init($0.key, $0.value) })
        if json.inOrder != expected.inOrder { return ["delivery \(id) says \(json.inOrder)"] }
        let headers = Dictionary(request.headers.map { ($0.name, $0.value) }) { first, _ in first }
        guard headers["webhook-id"] == id, headers["content-type"] == "application/json",
            let timestamp = headers["webhook-timestamp"].flatMap({ Int64($0) })
        else { return ["delivery \(id) has the headers \(headers)"] }
        let time = world.wallMilliseconds / 1_000
        if !mayTimeBeWrong(), abs(timestamp - time) > 60 { return ["delivery \(id) is of \(timestamp) at \(time)"] }
        guard let secret = secrets.first else { return [] }
        let signatures = headers["webhook-signature"]?.split(separator: " ").map(String.init) ?? []
        let key = Base64.decode(String(secret.dropFirst("whsec_".count))) ?? []
        let own = WebhookSecret(key: key).signature(id: id, timestamp: timestamp, body: request.body)
        return signatures == [own] ? [] : ["delivery \(id) is signed \(signatures) instead of \(own)"]
    }

    private func take(_ id: String, _ list: [JSONValue]) {
        let former = deliveries.updateValue(list, forKey: id)
        let isRepeat = former != nil
        if let former {
            world.met(.repeatedDelivery)
            if former != list { complaints.append("delivery \(id) comes again with other notifications") }
        } else {
            if let last, !acknowledged.contains(last) {
                complaints.append("delivery \(id) comes before \(last) was acknowledged")
            }
            last = id
        }
        for each in list {
            do throws(UnexpectedAnswer) { try see(each, isRepeat) } catch {
                complaints.append("delivery \(id): \(error)")
            }
        }
    }

    private func see(_ notification: JSONValue, _ isRepeat: Bool) throws(UnexpectedAnswer) {
        guard case .integer(let sequence)? = notification["seq"], let payload = notification["payload"],
            let user = payload["ck"]?["ckuserid"]?.string
        else { throw UnexpectedAnswer("no notification: \(notification)") }
        if user != (twin.addressee ?? user) { throw UnexpectedAnswer("\(payload) is not for \(user)") }
        twin.addressee = user
        let notice = try NotificationTwin.Notice(sequence, payload, of: user)
        var writer = JSONWriter()
        writer.value(payload)
        if let before = shown.updateValue(writer.bytes, forKey: sequence) {
            guard before == writer.bytes else { throw UnexpectedAnswer("\(notice) was something else before") }
            guard isRepeat else { throw UnexpectedAnswer("\(notice) came with another delivery before") }
            return
        }
        if let last = notices.last, notice.sequence != last.sequence + 1 {
            throw UnexpectedAnswer("\(notice) comes after \(last.sequence)")
        }
        notices.append(notice)
    }
}

/// The way from one process to a receiver.
struct WayToReceiver: WebhookTransport {
    let receiver: Receiver
    let process: ProcessLife

    func check(_ address: WebAddress) async throws(WebhookFailure) {}

    func send(_ request: WebhookRequest) async throws(WebhookFailure) -> Int {
        try await travel()
        let status = try receiver.take(request)
        try await travel(receiver.disturb(process.node))
        return status
    }

    /// What is left of a dead process reaches nobody.
    private func travel(_ nanoseconds: UInt64? = nil) async throws(WebhookFailure) {
        let world = receiver.world
        let delay = nanoseconds ?? world.microseconds(1_000...200_000)
        do {
            try await Sleep().wait { world.schedule(after: delay, .message, for: process, $0) }
        } catch {
            throw WebhookFailure("the node stops")
        }
        if process.isDead { throw WebhookFailure("the node has ended") }
    }

    func shutdown() async {}
}

extension Client {
    /// Has the receiver told of public records from now on.
    func makeWebhook(for receiver: Receiver) async {
        let called = recorder.watched.nextPlace()
        var isAnswered = false
        while !isAnswered, !isEnding { isAnswered = await saveWebhook(of: receiver) }
        receiver.begins(called: called, returned: isAnswered ? recorder.watched.nextPlace() : .max)
    }

    /// Makes the webhook, or takes it into use again where it failed for too long by the clocks.
    /// - Returns: whether that was answered.
    private func saveWebhook(of receiver: Receiver) async -> Bool {
        let answer = await ask(repeats: true) { visit throws(RequestFailure) -> String? in
            try await visit.requireDirectory()
            let webhooks = Webhooks(visit.service, Place.schemaKey)
            let origin = AuditOrigin(actor: "administrator", requestID: "", address: "", time: visit.service.now)
            var changes = Webhooks.Changes()
            (changes.url, changes.recordTypes) = ("https://mirror.example/", Receiver.types)
            (changes.fields, changes.isEnabled) = (Receiver.fields, true)
            if try await webhooks.list().contains(where: { $0.name == Receiver.name }) {
                return try await webhooks.change(Receiver.name, changes, origin: origin, by: visit.deadline).secret
            }
            return try await webhooks.create(Receiver.name, changes, origin: origin, by: visit.deadline).secret
        }
        switch answer {
        case .answered(let secret, _):
            if let secret { receiver.secrets = [secret] }
            return true
        case .nothing: return false
        // An earlier try was done meanwhile.
        case .failed(let failure) where [.exists, .conflict].contains(failure.error.code): return false
        case .failed(let failure):
            recorder.violated("the webhook is refused: \(failure.error)")
            return true
        }
    }

    /// Waits until everything is delivered, and holds it against what was changed.
    func readBack(_ receiver: Receiver) async {
        // What failed before does not make it wait any more.
        guard await saveWebhook(of: receiver) else {
            return recorder.violated("the webhook cannot be changed any more")
        }
        for _ in 0..<40 where !receiver.faults(by: recorder.watched, isOver: true).isEmpty { await sleep(World.second) }
        for fault in receiver.faults(by: recorder.watched, isOver: true).prefix(3) {
            recorder.violated("the receiver of the webhook: \(fault)")
        }
    }
}
