import Certificates
import Foundation
import TestSupport
import Testing

@Suite("The folder of certificates")
struct FolderTests {
    let scratch = Scratch()
    let now = Date(timeIntervalSince1970: 1_800_000_000)

    @Test("a loaded folder issues certificates of the same authorities")
    func load() throws {
        let made = try CertificateFolder.create(path: scratch.path, now: now)
        let loaded = try CertificateFolder.load(path: scratch.path)
        #expect(loaded.peerAuthority.certificate == made.peerAuthority.certificate)
        let files = try loaded.issueNode(nodeID: 1, now: now)
        let answer = try openssl(
            "verify", "-attime", "1800000001", "-CAfile", "\(scratch.path)/peer-ca.pem", files.peerCertificatePath)
        #expect(answer.status == 0, "\(answer.text)")
    }

    @Test("renewing changes serial and validity, and keeps keys, names and authorities")
    func renew() throws {
        let folder = try CertificateFolder.create(path: scratch.path, now: now)
        try folder.issueNode(nodeID: 10, hosts: ["b.example.org"], now: now)
        try folder.issueNode(nodeID: 2, hosts: ["a.example.org"], now: now)
        let kept = ["peer-ca.pem", "peer-ca.key", "client-ca.pem", "node-2/peer.key", "node-10/server.key"]
        let before = kept.map(scratch.read)
        let old = try CertificateFolder.status(path: scratch.path)
        let serials = try ["node-2/peer.pem", "node-10/server.pem"].map(serial)

        let later = now + 100 * 86_400
        let renewed = try folder.renew(now: later)

        #expect(renewed.map { String($0.dropFirst(scratch.path.count + 1)) } == old.dropFirst(2).map(\.file))
        #expect(kept.map(scratch.read) == before)
        let new = try CertificateFolder.status(path: scratch.path)
        #expect(new.map(\.names) == old.map(\.names))
        #expect(new.map(\.subject) == old.map(\.subject))
        #expect(new.dropFirst(2).allSatisfy { $0.notAfter == later + CertificateAuthority.leafLifetimeSeconds })
        #expect(try ["node-2/peer.pem", "node-10/server.pem"].map(serial) != serials)
    }

    func serial(_ file: String) throws -> String {
        try openssl("x509", "-noout", "-serial", "-in", "\(scratch.path)/\(file)").text
    }

    @Test("the status lists authorities and nodes in order, with names and expiry")
    func status() throws {
        let folder = try CertificateFolder.create(path: scratch.path, commonName: "Test", now: now)
        try folder.issueNode(nodeID: 10, now: now)
        try folder.issueNode(nodeID: 2, hosts: ["db.example.org"], now: now)
        let status = try CertificateFolder.status(path: scratch.path)
        #expect(
            status.map(\.file) == [
                "peer-ca.pem", "client-ca.pem", "node-2/peer.pem", "node-2/server.pem", "node-10/peer.pem",
                "node-10/server.pem",
            ])
        #expect(status[0].subject == "Test peer CA")
        #expect(status[2].issuer == "Test peer CA")
        #expect(status[2].names == ["URI:zonekeeper://node/2"])
        #expect(status[3].names == ["DNS:localhost", "IP:127.0.0.1", "IP:::1", "DNS:db.example.org"])
        #expect(status[0].notBefore == now - 300)
        #expect(status[0].daysLeft(at: now) == 3650)
        #expect(status[2].daysLeft(at: now) == 365)
        #expect(!status[2].isExpired(at: now) && status[2].isExpired(at: now + 365 * 86_400))
    }

    @Test("nothing that exists is overwritten")
    func keeps() throws {
        let folder = try CertificateFolder.create(path: scratch.path, now: now)
        try folder.issueNode(nodeID: 1, now: now)
        let before = scratch.read("node-1/peer.pem")
        let again = #expect(throws: CertificatesError.self) {
            try CertificateFolder.create(path: scratch.path, now: now)
        }
        #expect(again?.file == "\(scratch.path)/peer-ca.pem")
        #expect(throws: CertificatesError.self) { try folder.issueNode(nodeID: 1, now: now) }
        #expect(scratch.read("node-1/peer.pem") == before)
    }

    @Test("making authorities goes on wherever it was cut short, and makes none anew that nodes' certificates are of")
    func cutShort() throws {
        let names = ["peer-ca.key", "peer-ca.pem", "client-ca.key", "client-ca.pem"]
        let whole = try CertificateFolder.create(path: scratch.path, now: now)
        for count in names.indices {
            let other = Scratch()
            try FileManager.default.createDirectory(atPath: other.path, withIntermediateDirectories: true)
            for name in names.prefix(count) {
                try FileManager.default.copyItem(atPath: "\(scratch.path)/\(name)", toPath: "\(other.path)/\(name)")
            }
            let folder = try CertificateFolder.create(path: other.path, now: now)
            for name in names.prefix(count) { #expect(other.read(name) == scratch.read(name)) }
            #expect((other.read("peer-ca.key") == scratch.read("peer-ca.key")) == (count > 0))
            #expect(
                try CertificateFolder.load(path: other.path).clientAuthority.certificate
                    == folder.clientAuthority.certificate)
            try folder.issueNode(nodeID: 1, now: now)
        }
        try whole.issueNode(nodeID: 1, now: now)
        for name in ["client-ca.pem", "client-ca.key"] {
            try FileManager.default.removeItem(atPath: "\(scratch.path)/\(name)")
            let lost = #expect(throws: CertificatesError.self) {
                try CertificateFolder.create(path: scratch.path, now: now)
            }
            #expect(lost?.file == scratch.path + "/client-ca.pem")
        }
    }

    @Test("processes that make authorities at once come to the same")
    func atOnce() async throws {
        let (path, now) = (scratch.path, now)
        let folders = await withTaskGroup(of: CertificateFolder?.self) { group in
            for _ in 0..<2 { group.addTask { try? CertificateFolder.create(path: path, now: now) } }
            return await group.reduce(into: [CertificateFolder]()) { if let folder = $1 { $0.append(folder) } }
        }
        let loaded = try CertificateFolder.load(path: path)
        #expect(!folders.isEmpty)
        for folder in folders {
            #expect(folder.peerAuthority.certificate == loaded.peerAuthority.certificate)
            #expect(folder.clientAuthority.certificate == loaded.clientAuthority.certificate)
        }
    }

    @Test("errors say which file, what was wrong and what to do")
    func errors() throws {
        let missing = #expect(throws: CertificatesError.self) { try CertificateFolder.load(path: scratch.path) }
        #expect(missing?.file == "\(scratch.path)/peer-ca.pem")
        #expect(missing?.problem.contains("is missing") == true)
        #expect(missing?.remedy.isEmpty == false)

        let folder = try CertificateFolder.create(path: scratch.path, now: now)
        let host = #expect(throws: CertificatesError.self) {
            try folder.issueNode(nodeID: 1, hosts: ["a b:443"], now: now)
        }
        #expect(host?.file.contains("a b:443") == true)

        let clientKey = try #require(scratch.read("client-ca.key"))
        try clientKey.write(to: URL(fileURLWithPath: "\(scratch.path)/peer-ca.key"))
        let wrong = #expect(throws: CertificatesError.self) { try CertificateFolder.load(path: scratch.path) }
        #expect(wrong?.file == "\(scratch.path)/peer-ca.key")
        #expect(wrong?.problem.contains("does not belong") == true)

        try Data("nonsense".utf8).write(to: URL(fileURLWithPath: "\(scratch.path)/peer-ca.pem"))
        let damaged = #expect(throws: CertificatesError.self) { try CertificateFolder.load(path: scratch.path) }
        #expect(damaged?.file == "\(scratch.path)/peer-ca.pem")
    }

    @Test(
        "hosts are addresses or DNS names",
        arguments: [
            ("db-1.example.org", "DNS:db-1.example.org"), ("*.Example.org", "DNS:*.example.org"),
            ("10.0.0.5", "IP:10.0.0.5"),
            ("::1", "IP:::1"), ("-a.org", nil), ("a..b", nil), ("", nil), ("*", nil), ("host:1", nil), ("a_b", nil),
        ] as [(String, String?)])
    func hosts(host: String, expected: String?) {
        #expect((try? SubjectName(host: host))?.description == expected)
    }
}
