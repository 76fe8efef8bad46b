import Directory
import RecordModel
import Testing

@Suite("Webhooks in the directory")
struct WebhookTests {
    private let directory: TestDirectory
    private static let key = SchemaKey(container: "app", environment: .development)
    init() throws { directory = try TestDirectory.populated() }

    private static func webhook(_ name: String = "w", id: String = "1", revision: UInt64 = 0) -> Webhook {
        var webhook = Webhook(
            container: "app", environment: .development, name: name, id: id, url: "https://h.example/secret",
            sealedSecrets: [[1]], recordTypes: ["Note"], fields: ["title"], watchesPrivate: true, created: 5)
        webhook.revision = revision
        return webhook
    }

    private func save(_ webhook: Webhook) throws -> String? {
        try directory.refusal(of: .webhook(.save(webhook)))
    }

    private func remove(_ name: String = "w") throws -> String? {
        try directory.refusal(of: .webhook(.remove(container: "app", .development, name: name)))
    }

    private func all() throws -> [Webhook] { try directory.snapshot().webhooks(of: Self.key) }

    @Test("one is made once, changed from where it was seen, and removed once it is leaving")
    func life() throws {
        #expect(try save(Self.webhook()) == nil)
        #expect(try all() == [Self.webhook(revision: 1)])
        #expect(try save(Self.webhook(id: "2")) == "EXISTS")
        #expect(try save(Self.webhook("v", revision: 1)) == "NOT_FOUND")
        var changed = Self.webhook(revision: 1)
        changed.state = .disabled(reason: "why")
        #expect(try save(changed) == nil)
        #expect(try save(changed) == "CONFLICT")
        #expect(try remove() == "CONFLICT")
        changed.revision = 2
        changed.state = .leaving
        #expect(try save(changed) == nil)
        changed.revision = 3
        #expect(try save(changed) == "CONFLICT", "what is leaving does not come back")
        #expect(try remove() == nil)
        #expect(try remove() == "NOT_FOUND")
        #expect(try all().isEmpty)
    }

    @Test("an environment has twenty")
    func bound() throws {
        for number in 0..<20 { #expect(try save(Self.webhook("w\(number)")) == nil) }
        #expect(try save(Self.webhook("more")) == "BAD_REQUEST")
        #expect(try all().count == 20)
    }

    @Test(
        "one without a name, an address or a secret is refused",
        arguments: [
            { $0.name = "a b" }, { $0.name = "" }, { $0.url = "" }, { $0.sealedSecrets = [] },
            { $0.container = "none" },
        ] as [@Sendable (inout Webhook) -> Void])
    func refused(change: @Sendable (inout Webhook) -> Void) throws {
        var webhook = Self.webhook()
        change(&webhook)
        #expect(try save(webhook) != nil)
    }

    @Test("below its level the directory refuses it")
    func level() throws {
        let (outcome, changes) = try directory.apply(
            DirectoryEntry(.webhook(.save(Self.webhook()))), at: .boundedRows)
        guard case .refused(let error) = outcome else { Issue.record("\(outcome)"); return }
        #expect(error.code == .tryAgainLater && changes.isEmpty)
        #expect(try all().isEmpty)
    }

    @Test("those of a deleted container are not followed, and go with it")
    func container() throws {
        #expect(try save(Self.webhook()) == nil)
        #expect(try directory.snapshot().webhooks.count == 1)
        for step in [ContainerEnd.delete(time: 1), .purge(time: 1 + ContainerDeletion.graceMilliseconds), .remove] {
            #expect(try directory.refusal(of: .endContainer("app", step)) == nil)
            #expect(try directory.snapshot().webhooks.isEmpty)
        }
        #expect(try all().isEmpty)
        #expect(try directory.refusal(of: .createContainer(name: "app", time: 9)) == nil)
        #expect(try all().isEmpty)
    }

    @Test("the audit log tells what became of one, without the path of its address")
    func audit() throws {
        let origin = AuditOrigin(actor: "administrator", requestID: "1", address: "", time: 1)
        var webhook = Self.webhook()
        for state in [Webhook.State.enabled, .enabled, .disabled(reason: "three days"), .leaving] {
            webhook.state = state
            try directory.apply(DirectoryEntry(.webhook(.save(webhook)), origin: origin))
            webhook.revision += 1
        }
        let events = try directory.audit().records.map(\.event)
        #expect(
            events.map(\.action) == ["webhook.create", "webhook.update", "webhook.disable", "webhook.delete"])
        #expect(events.allSatisfy { $0.outcome == AuditEvent.done && !$0.subject.contains("secret") })
        #expect(events[0].subject == "container app (development): webhook w, https://h.example")
        #expect(events[2].subject.contains("three days"))
    }
}
