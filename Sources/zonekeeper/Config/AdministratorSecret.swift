import Foundation
import ServiceClient

/// The file with the administrator's token: 32 random bytes as hexadecimal digits, for its owner's eyes only.
enum AdministratorSecret {
    /// Makes the file if it is not there.
    /// - Returns: whether it was made.
    @discardableResult
    static func makeIfMissing(at path: String) throws(CommandFailure) -> Bool {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor < 0 {
            if errno == EEXIST { return false }
            throw CommandFailure("\(path) cannot be made: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        let text = RandomText.hex(bytes: 32) + "\n"
        guard write(descriptor, text, text.utf8.count) == text.utf8.count, fsync(descriptor) == 0 else {
            let reason = String(cString: strerror(errno))
            unlink(path)
            throw CommandFailure("\(path) cannot be written: \(reason)")
        }
        return true
    }

    /// The token in a file.
    static func read(_ path: String) throws(CommandFailure) -> String {
        let secret = try CommandFailure.orElse { () throws(ServiceClientError) in try SecretFile.read(path) }
        guard secret.utf8.count >= 32 else {
            throw CommandFailure("\(path) holds no administrator's token: 32 or more characters are expected")
        }
        return secret
    }
}

/// Text that nobody can guess.
enum RandomText {
    static func hex(bytes count: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in
            let byte = UInt8.random(in: 0 ... .max, using: &generator)
            return (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}
