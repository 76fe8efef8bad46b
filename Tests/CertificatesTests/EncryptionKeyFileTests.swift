import Certificates
import Foundation
import Testing

@Suite("The file of the encryption key")
struct EncryptionKeyFileTests {
    let scratch = Scratch()
    private var path: String { "\(scratch.path)/\(EncryptionKeyFile.name)" }

    @Test("it is 32 random bytes for its owner's eyes, made once and never overwritten")
    func made() throws {
        #expect(try EncryptionKeyFile.makeIfMissing(in: scratch.path))
        #expect(try scratch.mode(EncryptionKeyFile.name) == 0o600)
        let key = try EncryptionKeyFile.read(path)
        #expect(key.count == 32)
        #expect(try !EncryptionKeyFile.makeIfMissing(in: scratch.path))
        #expect(try EncryptionKeyFile.read(path) == key)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == [EncryptionKeyFile.name])
        let other = Scratch()
        _ = try EncryptionKeyFile.makeIfMissing(in: other.path)
        #expect(try EncryptionKeyFile.read("\(other.path)/\(EncryptionKeyFile.name)") != key)
    }

    @Test("digits may be large, and a line may end in any way")
    func forms() throws {
        _ = try EncryptionKeyFile.makeIfMissing(in: scratch.path)
        let key = try EncryptionKeyFile.read(path)
        let text = String(decoding: try #require(scratch.read(EncryptionKeyFile.name)), as: UTF8.self)
        for form in [text.uppercased(), text.replacingOccurrences(of: "\n", with: "\r\n"), text.dropLast() + ""] {
            try Data(form.utf8).write(to: URL(fileURLWithPath: path))
            #expect(try EncryptionKeyFile.read(path) == key)
        }
    }

    @Test(
        "what is no key is refused, and the error shows nothing of it",
        arguments: ["", "0123", String(repeating: "0", count: 63) + "g", String(repeating: "a", count: 66), "{}"])
    func refused(text: String) throws {
        _ = try EncryptionKeyFile.makeIfMissing(in: scratch.path)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: CertificatesError.self) { try EncryptionKeyFile.read(path) }
        #expect(error?.description.contains("holds no encryption key") == true)
        #expect(text.count < 10 || error?.description.contains(text) == false)
        // Nor is it replaced by another.
        #expect(try !EncryptionKeyFile.makeIfMissing(in: scratch.path))
    }

    @Test("a missing file is named")
    func missing() {
        let error = #expect(throws: CertificatesError.self) { try EncryptionKeyFile.read(path) }
        #expect(error?.file == path)
    }
}
