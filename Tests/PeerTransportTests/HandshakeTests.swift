import Certificates
import Foundation
import Logging
import NIOCore
import NIOSSL
import TestSupport
import Testing

@testable import PeerTransport

@Suite("Handshakes on the peer port", .timeLimit(.minutes(10)))
struct HandshakeTests {
    private static let hello: [UInt8] = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3] + [UInt8](repeating: 7, count: 194)

    /// A peer that must not get in, and what the log says of it.
    private struct Stranger: Sendable {
        var name: String
        /// The certificate and key that it shows; nil for no TLS.
        var files: (certificate: String, key: String)?
        var bytes: [UInt8]
        var reason: String
    }

    @Test("certificates that are not a node's of this cluster, now, are refused")
    func certificates() async throws {
        let folder = Scratch()
        let (expired, future) = (try Self.issued(now: Date() - 7_200), try Self.issued(now: Date() + 7_200))
        let strange = Fixtures.strangers.node(2)
        let strangers = [
            Stranger(
                name: "expired", files: expired, bytes: helloBytes(), reason: "or has expired"),
            Stranger(name: "not yet valid", files: future, bytes: helloBytes(), reason: "peer CA"),
            Stranger(
                name: "foreign", files: (strange.peerCertificatePath, strange.peerKeyPath), bytes: helloBytes(),
                reason: "peer CA"),
            Stranger(
                name: "self-signed", files: try folder.leaf("URI:zonekeeper://node/2", authority: nil),
                bytes: helloBytes(), reason: "peer CA"),
            Stranger(
                name: "a host's name", files: try folder.leaf("DNS:node2.example.com"), bytes: helloBytes(),
                reason: "names no node"),
            Stranger(
                name: "the id as a name", files: try folder.leaf("DNS:2"), bytes: helloBytes(), reason: "names no node"),
            Stranger(
                name: "another scheme", files: try folder.leaf("URI:https://node/2"), bytes: helloBytes(),
                reason: "names no node"),
            Stranger(
                name: "a padded id", files: try folder.leaf("URI:zonekeeper://node/02"), bytes: helloBytes(),
                reason: "names no node"),
            Stranger(
                name: "a longer path", files: try folder.leaf("URI:zonekeeper://node/2/x"), bytes: helloBytes(),
                reason: "names no node"),
            Stranger(
                name: "another node", files: try folder.leaf("URI:zonekeeper://node/22"), bytes: helloBytes(),
                reason: "names node 22"),
        ]
        for stranger in strangers {
            let node = try TestNode(1)
            try await node.start()
            let peer = try await RawPeer(
                port: node.transport.port ?? 0, tls: try clientTLS(stranger.files), saying: stranger.bytes)
            try await peer.events.wait(for: .closed)
            try await node.events.wait(forLog: .warning, "refused a peer connection from", stranger.reason)
            #expect(node.transport.counters.connectionsRefused == 1, "\(stranger.name)")
            #expect(node.events.messages.isEmpty, "\(stranger.name)")
            try await node.stop()
        }
        // The same way of making them makes a good one.
        let node = try TestNode(1)
        try await node.start()
        let peer = try await RawPeer(
            port: node.transport.port ?? 0, tls: try clientTLS(try folder.leaf("URI:zonekeeper://node/2")),
            saying: helloBytes())
        try await node.events.wait(for: "the introduction") {
            $0.contains { if case .introduced = $0 { true } else { false } }
        }
        peer.close()
        try await node.stop()
    }

    @Test("a peer that never finishes, wherever it stops, is closed and makes room")
    func neverFinishing() async throws {
        let node = try TestNode(1) { $0.handshakeTimeout = .milliseconds(300) }
        try await node.start()
        let port = node.transport.port ?? 0
        var peers: [RawPeer] = []
        for count in [0, 1, 4, 5, 11, 60, 200] {
            peers.append(try await RawPeer(port: port, tls: nil, saying: Array(Self.hello.prefix(count))))
        }
        // After TLS: nothing, half a frame, half a hello, and a hello that drips.
        for count in [0, 3, 5, 9] {
            peers.append(try await RawPeer(port: port, tls: try peerTLS(2), saying: Array(helloBytes().prefix(count))))
        }
        for peer in peers { try await peer.events.wait(for: .closed) }
        #expect(!node.events.all.contains { if case .introduced = $0 { true } else { false } })
        try await node.stop()
    }

    @Test("one address cannot take all the places of those who have not authenticated")
    func perAddress() async throws {
        let node = try TestNode(1) { $0.unauthenticatedPerAddressMax = 2 }
        try await node.start()
        let port = node.transport.port ?? 0
        let held = [try await RawPeer(port: port, tls: nil), try await RawPeer(port: port, tls: nil)]
        let third = try await RawPeer(port: port, tls: nil)
        try await third.events.wait(for: .closed)
        try await node.events.wait(forLog: .warning, "from 127.0.0.1: 2 others from there have not authenticated")
        #expect(node.transport.counters.connectionsOverLimit == 1)
        for peer in held { peer.close() }
        try await node.stop()
    }

    @Test("files that change are used by new connections in both directions; those of no use are not")
    func reload() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/zonekeeper-peers-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: path) }
        let certificates = try CertificateFolder.create(path: path, now: Date())
        for id in 1...2 { try certificates.issueNode(nodeID: UInt64(id), now: Date()) }
        func made(_ id: UInt64) throws -> TestNode {
            try TestNode(id) {
                $0.tls = Fixtures.tls(id, authority: certificates, leaf: certificates)
                $0.certificateCheckInterval = .zero
            }
        }
        let (one, two) = (try made(1), try made(2))
        try await one.start()
        try await two.start()
        // The authority goes, and another comes: the files of both nodes are new, as after a move to other authorities.
        let others = try CertificateFolder.create(path: path + "/new", now: Date())
        for id in 1...2 {
            let (new, old) = (try others.issueNode(nodeID: UInt64(id), now: Date()), certificates.node(UInt64(id)))
            for (from, to) in [
                (new.peerCertificatePath, old.peerCertificatePath), (new.peerKeyPath, old.peerKeyPath),
            ] { try Self.replace(to, with: from) }
        }
        try Self.replace(path + "/peer-ca.pem", with: others.path + "/peer-ca.pem")
        try await one.connect(to: two, as: 2)
        #expect(one.transport.counters.certificateReloads == 1)
        #expect(two.transport.counters.certificateReloads == 1)
        // Half of a pair, and another node's: the old ones stay, and it is said.
        try Self.replace(certificates.node(2).peerKeyPath, with: others.node(1).peerKeyPath)
        one.transport.update(peers: [])
        for channel in PeerChannel.allCases { try await one.events.wait(for: .disconnected(NodeID(2), channel)) }
        two.transport.update(peers: [one.address(as: 1)])
        try await two.connected(to: 1)
        try await two.events.wait(forLog: .warning, "cannot be used; the old ones stay", "does not go with")
        #expect(two.transport.counters.certificateReloads == 1)
        for node in [one, two] { try await node.stop() }
    }

    @Test("a certificate holds from its beginning to its end")
    func validity() {
        #expect(CertificateValidity.problem(from: 100, to: 200, now: 100) == nil)
        #expect(CertificateValidity.problem(from: 100, to: 200, now: 200) == nil)
        #expect(CertificateValidity.problem(from: 100, to: 200, now: 801)?.contains("expired 10 minutes") == true)
        #expect(CertificateValidity.problem(from: 100, to: 200, now: 40)?.contains("another 2 minutes") == true)
    }

    /// Node 2's certificate of our authority, for an hour from then.
    private static func issued(now: Date) throws -> (certificate: String, key: String) {
        let path = FileManager.default.temporaryDirectory.path + "/zonekeeper-times-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for file in ["peer-ca.pem", "peer-ca.key", "client-ca.pem", "client-ca.key"] {
            try FileManager.default.copyItem(atPath: "\(Fixtures.ours.path)/\(file)", toPath: "\(path)/\(file)")
        }
        let files = try CertificateFolder.load(path: path).issueNode(nodeID: 2, now: now, lifetime: 3_600)
        return (files.peerCertificatePath, files.peerKeyPath)
    }

    /// As a tool that renews does it: another file takes the name.
    private static func replace(_ path: String, with source: String) throws {
        try FileManager.default.copyItem(atPath: source, toPath: path + ".new")
        try #require(rename(path + ".new", path) == 0)
    }
}

/// Certificates that only another tool makes, in a folder that goes with the value.
final class Scratch {
    private let path = FileManager.default.temporaryDirectory.path + "/zonekeeper-leafs-" + UUID().uuidString
    private var count = 0

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// A certificate with a name, signed by our peer authority or by itself.
    func leaf(
        _ name: String, authority: CertificateFolder? = Fixtures.ours
    ) throws -> (certificate: String, key: String) {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        count += 1
        let (certificate, key) = ("\(path)/\(count).pem", "\(path)/\(count).key")
        var arguments = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
            "-subj", "/CN=leaf", "-addext", "subjectAltName=\(name)", "-keyout", key, "-out", certificate,
        ]
        if let authority {
            arguments += ["-CA", authority.path + "/peer-ca.pem", "-CAkey", authority.path + "/peer-ca.key"]
            arguments += ["-addext", "basicConstraints=critical,CA:FALSE"]
        }
        let made = try FinishedProgram(arguments)
        try #require(made.status == 0, "openssl req failed: \(made.errors)")
        return (certificate, key)
    }
}
