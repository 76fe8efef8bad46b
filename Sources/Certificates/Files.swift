import Crypto
import Foundation
import SwiftASN1
import X509

/// Reads and writes PEM files. A file appears whole or not at all; keys are readable by their owner only.
enum Files {
    static let keyMode: mode_t = 0o600
    static let certificateMode: mode_t = 0o644
    static let folderMode: mode_t = 0o700

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    static func names(in folder: String) throws(CertificatesError) -> [String] {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
            throw systemError(folder, "cannot be listed")
        }
        return names
    }

    /// Makes a folder for its owner only; a folder that is there keeps its contents and gets the mode.
    static func makeFolder(_ path: String) throws(CertificatesError) {
        if mkdir(path, folderMode) != 0, errno != EEXIST {
            throw systemError(path, "cannot be made")
        }
        if chmod(path, folderMode) != 0 { throw systemError(path, "cannot be closed to other users") }
    }

    /// Writes beside the file, fsyncs, renames over it and fsyncs the folder: the file is durable on return.
    static func write(_ text: String, to path: String, mode: mode_t) throws(CertificatesError) {
        let temporary = path + ".new"
        unlink(temporary)
        try writeWhole(text, to: temporary, mode: mode)
        guard rename(temporary, path) == 0 else { throw systemError(path, "cannot be replaced") }
        try syncFolder(of: path)
    }

    /// Like `write`, but a file that is there, or that another process makes at the same time, stays as it is.
    static func writeNew(_ text: String, to path: String, mode: mode_t) throws(CertificatesError) -> Bool {
        let temporary = "\(path).\(UUID().uuidString).new"
        defer { unlink(temporary) }
        try writeWhole(text, to: temporary, mode: mode)
        // Unlike a rename, a link never replaces.
        if link(temporary, path) != 0 {
            if errno == EEXIST { return false }
            throw systemError(path, "cannot be made")
        }
        try syncFolder(of: path)
        return true
    }

    private static func writeWhole(_ text: String, to path: String, mode: mode_t) throws(CertificatesError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw systemError(path, "cannot be made") }
        defer { close(descriptor) }
        // The umask may have taken bits away, and a key must have exactly its mode.
        guard fchmod(descriptor, mode) == 0 else { throw systemError(path, "cannot get its mode") }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw systemError(path, "cannot be written") }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else { throw systemError(path, "cannot be made durable") }
    }

    /// Renames a folder that was filled beside its final place.
    static func moveFolder(_ from: String, to path: String) throws(CertificatesError) {
        guard rename(from, path) == 0 else { throw systemError(path, "cannot be put in place") }
        try syncFolder(of: path)
    }

    static func read(_ path: String) throws(CertificatesError) -> String {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw systemError(path, exists(path) ? "cannot be read" : "is missing")
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw CertificatesError(file: path, problem: "is not text", remedy: "Put the right file there")
        }
        return text
    }

    static func readCertificate(_ path: String) throws(CertificatesError) -> Certificate {
        let text = try read(path)
        do { return try Certificate(pemEncoded: text) } catch {
            throw CertificatesError(
                file: path, problem: "is not a certificate in PEM form: \(error)",
                remedy: "Restore it from where the cluster's certificates were made, or issue it anew")
        }
    }

    static func readKey(_ path: String) throws(CertificatesError) -> P256.Signing.PrivateKey {
        let text = try read(path)
        do { return try P256.Signing.PrivateKey(pemRepresentation: text) } catch {
            throw CertificatesError(
                file: path, problem: "is not an ECDSA P-256 key in PEM form: \(error)",
                remedy: "Restore it, or start anew")
        }
    }

    /// Reads a key and checks that it belongs to the certificate beside it.
    static func readKey(
        _ path: String, for certificate: Certificate
    ) throws(CertificatesError) -> P256.Signing.PrivateKey {
        let key = try readKey(path)
        guard Certificate.PublicKey(key.publicKey) == certificate.publicKey else {
            throw CertificatesError(
                file: path, problem: "does not belong to the certificate beside it",
                remedy: "Restore both files from the same place")
        }
        return key
    }

    static func pem(_ certificate: Certificate) throws(CertificatesError) -> String {
        do { return try certificate.serializeAsPEM().pemString + "\n" } catch {
            throw CertificatesError(
                file: "certificate \(certificate.subject)", problem: "cannot be encoded: \(error)",
                remedy: "Report this")
        }
    }

    private static func syncFolder(of path: String) throws(CertificatesError) {
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw systemError(folder, "cannot be opened") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw systemError(folder, "cannot be made durable") }
    }

    private static func systemError(_ path: String, _ problem: String) -> CertificatesError {
        let code = errno
        let remedy =
            switch code {
            case EACCES, EPERM: "Run as the user who owns the folder, or give the certificates another folder"
            case ENOENT: "Check the path; make the certificates first if they were never made"
            case ENOSPC, EDQUOT: "Free some space on the disk"
            default: "Check the disk and the path"
            }
        return CertificatesError(file: path, problem: "\(problem): \(String(cString: strerror(code)))", remedy: remedy)
    }
}

/// The file with the cluster's encryption key: 32 random bytes as 64 hexadecimal digits, for its owner's eyes only.
///
/// It wraps the data keys by which encrypted fields are sealed. Every node needs the same file, and a backup without
/// secrets has no copy of it: once it is lost, no encrypted field can be read again.
package enum EncryptionKeyFile {
    /// Its name in the folder of the certificates.
    package static let name = "encryption.key"

    private static let keyBytes = 32

    /// Makes the file in a folder, which is made too, if it is not there. It appears whole or not at all, and what is
    /// there is never overwritten, whoever makes it at the same time.
    package static func makeIfMissing(in folder: String) throws(CertificatesError) -> Bool {
        let path = "\(folder)/\(name)"
        if Files.exists(path) { return false }
        try Files.makeFolder(folder)
        let bytes = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
        let digits = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return try Files.writeNew(digits + "\n", to: path, mode: Files.keyMode)
    }

    /// The key in a file.
    package static func read(_ path: String) throws(CertificatesError) -> [UInt8] {
        let text = try Files.read(path).utf8.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        let digits = text.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard text.count == 2 * keyBytes, digits.count == text.count else {
            throw CertificatesError(
                file: path, problem: "holds no encryption key (\(2 * keyBytes) hexadecimal digits are expected)",
                remedy: "Put the cluster's own key file there; a new one would not open what the old one sealed")
        }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
