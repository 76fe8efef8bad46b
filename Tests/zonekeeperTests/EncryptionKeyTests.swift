import Foundation
import Testing

@testable import zonekeeper

@Suite("The encryption key beside the certificates")
struct EncryptionKeyTests {
    @Test("It is made once with the certificates, and in a folder that was made without it")
    func made() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/zonekeeper-key-" + RandomText.hex(bytes: 8)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/encryption.key"
        let first = try CertificateMaking.makeMissing(in: folder, name: "test", nodes: [(1, [])])
        #expect(first.authorities && first.nodes == [1] && first.encryptionKey)
        let key = FileManager.default.contents(atPath: path)
        #expect(key?.count == 65)
        #expect(try CertificateMaking.makeMissing(in: folder, name: "test", nodes: [(1, [])]).isNothing)
        #expect(FileManager.default.contents(atPath: path) == key)
        // A folder of an earlier version has no key.
        try FileManager.default.removeItem(atPath: path)
        let later = try CertificateMaking.makeMissing(in: folder, name: "test", nodes: [(1, [])])
        #expect(!later.authorities && later.nodes.isEmpty && later.encryptionKey)
        #expect(FileManager.default.contents(atPath: path) != key)
    }
}
