import Certificates
import Foundation
import TestSupport
import Testing

@Suite("Authorities and leaf certificates")
struct IssueTests {
    let scratch = Scratch()
    /// Near the machine's own time, because openssl judges validity by its clock.
    let now = Date()

    func folder() throws -> CertificateFolder { try CertificateFolder.create(path: scratch.path, now: now) }

    @Test("openssl accepts a peer certificate of the peer authority for both ends of a connection")
    func peerVerifies() throws {
        let files = try folder().issueNode(nodeID: 7, now: now)
        for purpose in ["sslclient", "sslserver"] {
            let answer = try openssl(
                "verify", "-x509_strict", "-purpose", purpose, "-CAfile", "\(scratch.path)/peer-ca.pem",
                files.peerCertificatePath)
            #expect(answer.status == 0, "\(answer.text)")
        }
    }

    @Test("openssl accepts a server certificate for localhost, loopback addresses and the node's hosts, and no other")
    func serverVerifies() throws {
        let files = try folder().issueNode(nodeID: 7, hosts: ["DB1.example.org", "10.1.2.3", "fd00::5"], now: now)
        let authority = "\(scratch.path)/client-ca.pem"
        func verify(_ option: String, _ name: String) throws -> Int32 {
            try openssl(
                "verify", "-x509_strict", "-purpose", "sslserver", option, name, "-CAfile", authority,
                files.serverCertificatePath
            ).status
        }
        for name in ["localhost", "db1.example.org"] { #expect(try verify("-verify_hostname", name) == 0) }
        for address in ["127.0.0.1", "::1", "10.1.2.3", "fd00::5"] { #expect(try verify("-verify_ip", address) == 0) }
        #expect(try verify("-verify_hostname", "db2.example.org") != 0)
        #expect(try verify("-verify_ip", "10.1.2.4") != 0)
    }

    @Test("a certificate of the client port is not good as a node's, by authority and by purpose")
    func serverIsNotPeer() throws {
        let files = try folder().issueNode(nodeID: 1, now: now)
        let wrongAuthority = try openssl(
            "verify", "-CAfile", "\(scratch.path)/peer-ca.pem", files.serverCertificatePath)
        #expect(wrongAuthority.status != 0)
        let wrongPurpose = try openssl(
            "verify", "-purpose", "sslclient", "-CAfile", "\(scratch.path)/client-ca.pem", files.serverCertificatePath)
        #expect(wrongPurpose.status != 0)
    }

    @Test("a peer certificate carries the node's URI and nothing else, an EC P-256 key and the leaf's extensions")
    func peerContents() throws {
        let files = try folder().issueNode(nodeID: 42, hosts: ["db.example.org"], now: now)
        let text = try openssl("x509", "-noout", "-text", "-in", files.peerCertificatePath).text
        #expect(text.contains("URI:zonekeeper://node/42"))
        #expect(!text.contains("DNS:"))
        #expect(text.contains("prime256v1"))
        #expect(text.contains("CA:FALSE"))
        #expect(text.contains("TLS Web Server Authentication, TLS Web Client Authentication"))
    }

    @Test("keys belong to their certificates, in openssl's eyes")
    func keysMatch() throws {
        let files = try folder().issueNode(nodeID: 1, now: now)
        for (certificate, key) in [
            (files.peerCertificatePath, files.peerKeyPath), (files.serverCertificatePath, files.serverKeyPath),
        ] {
            let fromKey = try openssl("pkey", "-pubout", "-in", key)
            #expect(fromKey.status == 0, "\(fromKey.text)")
            #expect(try openssl("x509", "-noout", "-pubkey", "-in", certificate).text == fromKey.text)
        }
    }

    @Test("keys are readable by their owner only, and so are folders")
    func modes() throws {
        try folder().issueNode(nodeID: 1, now: now)
        for key in ["peer-ca.key", "client-ca.key", "node-1/peer.key", "node-1/server.key"] {
            #expect(try scratch.mode(key) == 0o600, "\(key)")
        }
        for folder in ["", "node-1"] { #expect(try scratch.mode(folder) == 0o700, "\(folder)") }
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted()
        #expect(left == ["client-ca.key", "client-ca.pem", "node-1", "peer-ca.key", "peer-ca.pem"])
    }

    @Test("a leaf does not outlive its authority")
    func clamped() throws {
        let folder = try CertificateFolder.create(path: scratch.path, now: now, lifetime: 86_400)
        try folder.issueNode(nodeID: 1, now: now)
        let status = try CertificateFolder.status(path: scratch.path)
        #expect(Set(status.map(\.notAfter)).count == 1)
        let later = now + 90_000
        #expect(throws: CertificatesError.self) { try folder.issueNode(nodeID: 2, now: later) }
    }
}
