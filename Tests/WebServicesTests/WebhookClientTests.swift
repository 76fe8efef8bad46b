import Admission
import Certificates
import Cluster
import Directory
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import RecordModel
import Service
import Synchronization
import TestSupport
import Testing

@testable import WebServices

@Suite("Deliveries over HTTP")
struct WebhookClientTests {
    private static let allowing = ServiceSettings.reachingThisMachine.webhooks

    /// A resolver that answers with these addresses, and counts how often it is asked.
    private final class Names: Sendable {
        let asked = Atomic<Int>(0)
        private let addresses: [String]

        init(_ addresses: String...) { self.addresses = addresses }

        var resolver: WebhookClient.Resolver {
            { [self] _, port in
                asked.add(1, ordering: .relaxed)
                return try addresses.map { try SocketAddress(ipAddress: $0, port: port) }
            }
        }
    }

    private final class Counter: Sendable {
        let count = Atomic<Int>(0)
    }

    private func request(_ url: String, failures: UInt64 = 0) throws -> WebhookRequest {
        WebhookRequest(
            address: try #require(WebAddress(url)), headers: [("webhook-id", "1")], body: Array("{}".utf8),
            failures: failures)
    }

    private func status(_ client: WebhookClient, _ url: String, failures: UInt64 = 0) async throws -> Int {
        try await client.send(try request(url, failures: failures))
    }

    private func failure(_ client: WebhookClient, _ url: String) async throws -> String {
        let request = try request(url)
        do throws(WebhookFailure) {
            let status = try await client.send(request)
            throw WebhookFailure("answered \(status)")
        } catch {
            return error.reason
        }
    }

    @Test("a name server that does not answer keeps no other name waiting")
    func slowNames() async throws {
        let asked = Counter()
        let answer = DispatchSemaphore(value: 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<40 {
                group.addTask {
                    try await WebhookClient.onOwnThread {
                        asked.count.add(1, ordering: .relaxed)
                        answer.wait()
                    }
                }
            }
            while asked.count.load(ordering: .relaxed) < 40 { await Task.yield() }
            #expect(try await WebhookClient.systemResolver("127.0.0.1", 80).count == 1)
            for _ in 0..<40 { answer.signal() }
            try await group.waitForAll()
        }
    }

    @Test("the connection goes to the address that was checked, whatever the name service would say later")
    func pinned() async throws {
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer()
        } _: { server in
            let names = Names("127.0.0.1")
            let client = WebhookClient(Self.allowing, resolve: names.resolver)
            // Nobody else knows this name.
            let answer = try await status(client, "http://hooks.invalid:\(server.port)/x?y=1")
            #expect(answer == 200)
            #expect(names.asked.load(ordering: .relaxed) == 1)
            let asked = try #require(server.requests.first)
            #expect(asked.target == "/x?y=1" && asked.headers.first(name: "host") == "hooks.invalid:\(server.port)")
            #expect(asked.headers.first(name: "webhook-id") == "1" && asked.body == Array("{}".utf8))
            await client.shutdown()
            #expect(try await failure(client, server.url) == "this node is stopping")
        }
    }

    @Test(
        "a name with one address that is not public is refused, and nothing is sent",
        arguments: [["127.0.0.1"], ["1.1.1.1", "10.0.0.1"], ["::1"], ["::ffff:192.168.0.1"], ["169.254.169.254"]])
    func refused(addresses: [String]) async throws {
        var settings = WebhookSettings()
        settings.allowsPlainHTTP = true
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer()
        } _: { server in
            let client = WebhookClient(settings) { _, port in
                try addresses.map { try SocketAddress(ipAddress: $0, port: port) }
            }
            let reason = try await failure(client, "http://hooks.invalid:\(server.port)/")
            #expect(reason.contains("is no address of the public Internet"))
            let address = try #require(WebAddress("http://hooks.invalid:\(server.port)/"))
            await #expect(throws: WebhookFailure.self) { try await client.check(address) }
            #expect(server.requests.isEmpty)
            await client.shutdown()
        }
    }

    @Test("the machine's own names and addresses are refused", arguments: ["localhost", "127.0.0.1", "[::1]", "127.1"])
    func thisMachine(host: String) async throws {
        let client = WebhookClient(WebhookSettings())
        let reason = try await failure(client, "https://\(host):1/")
        #expect(reason.contains("is no address of the public Internet"), "\(reason)")
        await client.shutdown()
    }

    @Test("a redirect is not followed")
    func redirect() async throws {
        try await ScriptedServer.running { request, _ in
            request.path == "/" ? ScriptedAnswer(status: 307, headers: [("Location", "/other")]) : ScriptedAnswer()
        } _: { server in
            let client = WebhookClient(Self.allowing)
            let answer = try await status(client, server.url)
            #expect(answer == 307)
            #expect(server.requests.map(\.target) == ["/"])
            await client.shutdown()
        }
    }

    @Test("an answer of any length counts by its status alone")
    func longAnswer() async throws {
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer(status: 200, body: String(repeating: "x", count: 10 << 20))
        } _: { server in
            let client = WebhookClient(Self.allowing)
            let answer = try await status(client, server.url)
            #expect(answer == 200)
            let again = try await status(client, server.url)
            #expect(again == 200)
            await client.shutdown()
        }
    }

    @Test("where many hosts are told, a connection with a delivery under way is not closed for another one")
    func busy() async throws {
        try await ScriptedServer.running { _, earlier in
            var answer = ScriptedAnswer()
            answer.isKeptBack = earlier == 0
            return answer
        } _: { server in
            let client = WebhookClient(Self.allowing, clientsMax: 1, resolve: Names("127.0.0.1").resolver)
            async let first = status(client, "http://a.invalid:\(server.port)/")
            try await awaitTrue("the first is under way") { server.requests.count == 1 }
            for host in ["b.invalid", "c.invalid"] {
                let answer = try await status(client, "http://\(host):\(server.port)/")
                #expect(answer == 200)
            }
            server.release()
            let answer = try await first
            #expect(answer == 200)
            await client.shutdown()
        }
    }

    @Test("each repeat goes to another address of the host")
    func addresses() async throws {
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer()
        } _: { server in
            // Nobody listens on the first one.
            let client = WebhookClient(Self.allowing, resolve: Names("127.9.9.9", "127.0.0.1").resolver)
            let url = "http://hooks.invalid:\(server.port)/"
            #expect((try await failure(client, url)).contains("hooks.invalid"))
            let answer = try await status(client, url, failures: 1)
            #expect(answer == 200)
            await client.shutdown()
        }
    }

    @Test("over TLS the certificate must be the host's, not the address's")
    func certificates() async throws {
        let folder = NSTemporaryDirectory() + "zonekeeper-hooks-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let certificates = try CertificateFolder.create(path: folder, commonName: "test", now: Date())
        try certificates.issueNode(nodeID: 1, hosts: ["hooks.invalid"], now: Date())
        let paths = certificates.node(1)
        let chain = try NIOSSLCertificate.fromPEMFile(paths.serverCertificatePath).map {
            NIOSSLCertificateSource.certificate($0)
        }
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: chain,
                privateKey: .privateKey(try NIOSSLPrivateKey(file: paths.serverKeyPath, format: .pem))))
        try await ScriptedServer.running(on: "127.0.0.2", tls: context) { _, _ in
            ScriptedAnswer()
        } _: { server in
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(folder + "/client-ca.pem")
            let client = WebhookClient(Self.allowing, tls: tls, resolve: Names("127.0.0.2").resolver)
            let answer = try await status(client, "https://hooks.invalid:\(server.port)/")
            #expect(answer == 200)
            #expect((try await failure(client, "https://other.invalid:\(server.port)/")).contains("other.invalid"))
            #expect(server.requests.count == 1)
            let strangers = WebhookClient(Self.allowing, resolve: Names("127.0.0.2").resolver)
            #expect((try await failure(strangers, "https://hooks.invalid:\(server.port)/")).contains("hooks.invalid"))
            await client.shutdown()
            await strangers.shutdown()
        }
    }

    @Test("a node that allows nothing else takes no webhook to this machine, nor one without TLS")
    func administration() async throws {
        let world = try await ConsoleWorld()
        for (url, reason) in [
            ("https://127.0.0.1:1/", "no address of the public Internet"), ("http://1.1.1.1/", "https is expected"),
        ] {
            let page = try await world.token(
                "POST", "webhooks",
                #"{"container": "\#(ConsoleWorld.container)", "name": "w", "url": "\#(url)", "private": true}"#)
            #expect(page.status == 400 && page.json["reason"]?.string?.contains(reason) == true, "\(page)")
        }
        try await world.node.stop()
    }

    @Test("one whose time is over once the directory has it is answered with its secret, and is told all the same")
    func late() async throws {
        let world = try await ConsoleWorld(service: .reachingThisMachine)
        let schema = "DEFINE SCHEMA RECORD TYPE Note (text STRING, GRANT READ TO \"_world\");"
        try await world.admin("POST", "schema?container=\(ConsoleWorld.container)", schema)
        let service = world.node.recordService
        let webhooks = Webhooks(service, SchemaKey(container: ConsoleWorld.container, environment: .development))
        let origin = AuditOrigin(actor: "administrator", requestID: "r", address: "", time: 1)
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer(status: 200)
        } _: { receiver in
            var changes = Webhooks.Changes()
            (changes.url, changes.recordTypes) = (receiver.url, ["Note"])
            let made = try await webhooks.create(
                "hook", changes, origin: origin, by: service.node.deadline(milliseconds: 0))
            #expect(made.webhook.revision == 1)
            changes = Webhooks.Changes()
            changes.secret = .rotate
            let rotated = try await webhooks.change(
                "hook", changes, origin: origin, by: service.node.deadline(milliseconds: 0))
            #expect(rotated.webhook.revision == 2 && rotated.webhook.sealedSecrets.count == 2)
            let secrets = [try #require(made.secret), try #require(rotated.secret)]
            let path = "/database/1/\(ConsoleWorld.container)/development/public/records/modify"
            let save = #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "fields": {}}}]}"#
            // One is saved after the node that delivers has done what this one could not.
            try await awaitTrue("a record is told of, signed with both secrets") {
                _ = try await world.token("POST", path, save)
                return receiver.requests.contains { request in
                    secrets.allSatisfy { WebhookDelivery(request, secret: $0)?.numbers.isEmpty == false }
                }
            }
            changes.secret = .dropNewest
            let kept = try await webhooks.change("hook", changes, origin: origin, by: service.deadline())
            #expect(kept.webhook.sealedSecrets == made.webhook.sealedSecrets && kept.secret == nil)
        }
        try await world.node.stop()
    }
}
