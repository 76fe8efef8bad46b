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

    /// What the webhook is to tell.
    struct Terms: Hashable, Sendable {
        var types = Receiver.types
        var fields = [Place.valueField, Place.numberField]

        fileprivate func subscription(to type: String) -> NotificationTwin.Subscription? {
            guard types.contains(type) else { return nil }
            return NotificationTwin.Subscription(
                id: type, kind: .query, isPublic: true, type: type, events: Set(WatchedHistory.Event.allCases),
                looks: NotificationForm(flags: ["shouldSendContentAvailable"], fields: fields))
        }
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
    /// What was asked for last.
    private(set) var terms = Terms()
    /// Whether it is told of something.
    private(set) var hasBegun = false
    /// What became of a change that somebody else made at the same time.
    fileprivate var rival: Client.WebhookSaved?
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
        hasBegun = true
        turn(to: terms, called: called, returned: returned)
    }

    /// The webhook tells by other terms of what is committed after the change was answered; nil: it never was.
    /// - Parameter contested: a type that somebody else wanted and this change did not, or the other way round.
    func turn(to new: Terms, called: Int, returned: Int?, contested: String? = nil) {
        if let contested, let subscription = Terms(types: [contested], fields: new.fields).subscription(to: contested) {
            // Its subscription may have come and gone meanwhile, in any order.
            if terms.types.contains(contested) { twin.ends(contested, called: called) }
            twin.saved(subscription, called: called, returned: .max, isRepeated: true)
            terms.types.append(contested)
        }
        for type in Self.types {
            if let subscription = new.subscription(to: type) {
                twin.saved(subscription, called: called, returned: returned ?? .max, isRepeated: returned == nil)
            } else if terms.types.contains(type) {
                if let returned {
                    twin.deleted(type, called: called, returned: returned)
                } else {
                    twin.ends(type, called: called)
                }
            }
        }
        terms = new
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
        while !isAnswered, !isEnding { isAnswered = await saveWebhook(of: receiver, receiver.terms).revision != nil }
        receiver.begins(called: called, returned: isAnswered ? recorder.watched.nextPlace() : .max)
    }

    /// Has the receiver told of other types, or of other fields; somebody else may want what was before, at once.
    func changeWebhook(of receiver: Receiver) async {
        guard receiver.hasBegun else { return }
        var terms = receiver.terms
        let type = world.chance(70) ? world.pick(Receiver.types) : nil
        if let type {
            let others = terms.types.filter { $0 != type }
            terms.types = others.count < terms.types.count && !others.isEmpty ? others : others + [type]
        } else {
            terms.fields = world.pick([[Place.valueField], [Place.valueField, Place.numberField]])
        }
        let called = recorder.watched.nextPlace()
        let isContested = type != nil && world.chance(50)
        var revision: UInt64?
        if isContested, let (won, last) = await contest(terms, of: receiver) { (terms, revision) = (won, last) }
        while revision == nil, !isEnding { revision = await saveWebhook(of: receiver, terms).revision }
        var isInForce = false
        while let revision, !isInForce, !isEnding {
            isInForce = await hasInForce(revision)
            if !isInForce { await sleep(100 * World.millisecond) }
        }
        let returned = isInForce ? recorder.watched.nextPlace() : nil
        let asked = isContested ? ", while somebody else wanted it otherwise" : ""
        world.note("  client \(number): the webhook tells of \(terms.types), \(terms.fields)\(asked)")
        receiver.turn(to: terms, called: called, returned: returned, contested: isContested ? type : nil)
        if isInForce { world.met(isContested ? .contestedWebhook : .changedWebhook) }
    }

    /// Has the webhook changed while somebody else changes it back.
    /// - Returns: what was saved last, and its revision; nil where that is not known.
    private func contest(
        _ terms: Receiver.Terms, of receiver: Receiver
    ) async -> (terms: Receiver.Terms, revision: UInt64)? {
        let former = receiver.terms
        receiver.rival = nil
        executor.start { [self] in
            moveOn()
            receiver.rival = await saveOnce(former, of: receiver)
        }
        let own = await saveOnce(terms, of: receiver)
        while receiver.rival == nil { await sleep(20 * World.millisecond) }
        if let own = own.revision, let other = receiver.rival?.revision {
            return own > other ? (terms, own) : (former, other)
        }
        // What may have been done may yet be done.
        await sleep(30 * World.second)
        return nil
    }

    /// Saves until that is done, or may be.
    private func saveOnce(_ terms: Receiver.Terms, of receiver: Receiver) async -> WebhookSaved {
        while !isEnding {
            let saved = await saveWebhook(of: receiver, terms, repeats: false)
            guard case .refused = saved else { return saved }
        }
        return .unknown
    }

    /// What came of saving a webhook.
    fileprivate enum WebhookSaved {
        case saved(revision: UInt64)
        /// Nothing was done, or another try was done meanwhile.
        case refused
        case unknown

        var revision: UInt64? { if case .saved(let revision) = self { revision } else { nil } }
    }

    /// Whether the node that delivers has put a revision into force, so that no earlier one comes after it.
    private func hasInForce(_ revision: UInt64) async -> Bool {
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            try await Webhooks(visit.service, Place.schemaKey).progress(of: Receiver.name).progress.revision
        }
        if case .answered(let inForce, _) = answer { return inForce >= revision }
        return false
    }

    /// Makes the webhook, or gives it these terms and takes it into use again where it failed for too long by the
    /// clocks.
    private func saveWebhook(
        of receiver: Receiver, _ terms: Receiver.Terms, repeats: Bool = true
    ) async -> WebhookSaved {
        let answer = await ask(repeats: repeats) { visit throws(RequestFailure) -> Webhooks.Saved in
            try await visit.requireDirectory()
            let webhooks = Webhooks(visit.service, Place.schemaKey)
            let origin = AuditOrigin(actor: "administrator", requestID: "", address: "", time: visit.service.now)
            var changes = Webhooks.Changes()
            (changes.url, changes.recordTypes) = ("https://mirror.example/", terms.types)
            (changes.fields, changes.isEnabled) = (terms.fields, true)
            if try await webhooks.list().contains(where: { $0.name == Receiver.name }) {
                return try await webhooks.change(Receiver.name, changes, origin: origin, by: visit.deadline)
            }
            return try await webhooks.create(Receiver.name, changes, origin: origin, by: visit.deadline)
        }
        switch answer {
        case .answered(let saved, _):
            if let secret = saved.secret { receiver.secrets = [secret] }
            return .saved(revision: saved.webhook.revision)
        case .nothing(let mayHaveBeenDone): return mayHaveBeenDone ? .unknown : .refused
        case .failed(let failure) where [.exists, .conflict].contains(failure.error.code): return .refused
        case .failed(let failure):
            recorder.violated("the webhook is refused: \(failure.error)")
            return .saved(revision: 0)
        }
    }

    /// Waits until everything is delivered, and holds it against what was changed.
    func readBack(_ receiver: Receiver) async {
        // What failed before does not make it wait any more.
        guard await saveWebhook(of: receiver, receiver.terms).revision != nil else {
            return recorder.violated("the webhook cannot be changed any more")
        }
        for _ in 0..<40 where !receiver.faults(by: recorder.watched, isOver: true).isEmpty { await sleep(World.second) }
        for fault in receiver.faults(by: recorder.watched, isOver: true).prefix(3) {
            recorder.violated("the receiver of the webhook: \(fault)")
        }
    }
}
