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
    static let subscription = NotificationTwin.Subscription(
        id: Place.type, kind: .query, isPublic: true, events: Set(WatchedHistory.Event.allCases))

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

    init(world: World, mayLose: Bool) {
        self.world = world
        self.mayLose = mayLose
    }

    /// The webhook tells of what is committed from now on.
    func begins(called: Int, returned: Int) {
        twin.saved(Self.subscription, called: called, returned: returned, isRepeated: false)
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
        if json["lost"] == .bool(true), !isAtLoss {
            isAtLoss = true
            world.met(.toldOfLoss)
            if !mayLose { complaints.append("delivery \(id) tells of a loss, and nothing was lost") }
        }
        if !isAtLoss { take(id, list) }
        if !isReliable, world.chance(10) { throw WebhookFailure("its answer is lost") }
        acknowledged.insert(id)
        return 200
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
        while !isAnswered, !isEnding { isAnswered = await saveWebhook() }
        receiver.begins(called: called, returned: isAnswered ? recorder.watched.nextPlace() : .max)
    }

    /// Makes the webhook, or takes it into use again where it failed for too long by the clocks.
    /// - Returns: whether that was answered.
    private func saveWebhook() async -> Bool {
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let webhooks = Webhooks(visit.service, Place.schemaKey)
            let origin = AuditOrigin(actor: "administrator", requestID: "", address: "", time: visit.service.now)
            var changes = Webhooks.Changes()
            (changes.url, changes.recordTypes) = ("https://mirror.example/", [Place.type])
            (changes.fields, changes.isEnabled) = ([Place.valueField], true)
            if try await webhooks.list().contains(where: { $0.name == Receiver.name }) {
                _ = try await webhooks.change(Receiver.name, changes, origin: origin, by: visit.deadline)
            } else {
                _ = try await webhooks.create(Receiver.name, changes, origin: origin, by: visit.deadline)
            }
        }
        switch answer {
        case .answered: return true
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
        guard await saveWebhook() else { return recorder.violated("the webhook cannot be changed any more") }
        for _ in 0..<40 where !receiver.faults(by: recorder.watched, isOver: true).isEmpty { await sleep(World.second) }
        for fault in receiver.faults(by: recorder.watched, isOver: true).prefix(3) {
            recorder.violated("the receiver of the webhook: \(fault)")
        }
    }
}
