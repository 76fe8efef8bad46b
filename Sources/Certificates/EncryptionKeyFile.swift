import Crypto
import Foundation

/// The file with the cluster's encryption key: 32 random bytes as 64 hexadecimal digits, for its owner's eyes only.
///
/// It wraps the data keys by which encrypted fields are sealed. Every node needs the same file, and a backup without secrets has no
/// copy of it: once it is lost, no encrypted field can be read again.
package enum EncryptionKeyFile {
    /// Its name in the folder of the certificates.
    package static let name = "encryption.key"

    private static let keyBytes = 32

    /// Makes the file in a folder, which is made too, if it is not there. It appears whole or not at all, and what is there is
    /// never overwritten, whoever makes it at the same time.
    /// - Returns: whether it was made.
    /// - Throws: `CertificatesError` naming the file that cannot be written.
    package static func makeIfMissing(in folder: String) throws(CertificatesError) -> Bool {
        let path = "\(folder)/\(name)"
        if Files.exists(path) { return false }
        try Files.makeFolder(folder)
        let bytes = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
        let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return try Files.writeNew(digits + "\n", to: path, mode: Files.keyMode)
    }

    /// The key in a file.
    /// - Throws: `CertificatesError` if it cannot be read, or holds no key.
    package static func read(_ path: String) throws(CertificatesError) -> [UInt8] {
        let digits = Array(try Files.read(path).utf8.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) })
        let bytes = stride(from: 0, to: digits.count - digits.count % 2, by: 2).compactMap { position -> UInt8? in
            guard let high = Self.value(of: digits[position]), let low = Self.value(of: digits[position + 1]) else {
                return nil
            }
            return high << 4 | low
        }
        guard digits.count == 2 * keyBytes, bytes.count == keyBytes else {
            throw CertificatesError(
                file: path, problem: "holds no encryption key (\(2 * keyBytes) hexadecimal digits are expected)",
                remedy: "Put the cluster's own key file there; a new one would not open what the old one sealed")
        }
        return bytes
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
