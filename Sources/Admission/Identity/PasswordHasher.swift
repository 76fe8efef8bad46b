import Crypto
import CryptoExtras
package import Directory
import Foundation
package import RecordModel

/// Makes and compares hashes of passwords: scrypt (RFC 7914) of the password's UTF-8 bytes in Unicode's form NFC, so
/// that one password typed on two keyboards is one password.
///
/// Every call takes about 0.1 s of a processor and 34 MiB: it runs off event loops, and the shell bounds how many run
/// at once.
package enum PasswordHasher {
    /// The length of a password in bytes, after normalisation.
    package static let passwordBytes = 8...1024
    /// The length of a new salt in bytes.
    package static let saltBytes = 16

    private static let logN: UInt8 = 15
    private static let r: UInt32 = 8
    private static let p: UInt32 = 1
    private static let hashBytes = 32
    /// What checking one stored hash may cost, as 128 * N * r bytes of memory and p rounds of it: twice of what is made
    /// today.
    private static let memoryBytesMax = 64 << 20
    private static let roundsMax: UInt32 = 16

    /// Hashes a new password.
    ///
    /// - Parameter salt: `saltBytes` random bytes, new for each password.
    /// - Throws: `BAD_REQUEST` where the password is too short or too long; the reason does not show it.
    package static func hash(_ password: String, salt: [UInt8]) throws(ServiceError) -> PasswordHash {
        precondition(salt.count >= saltBytes, "\(salt.count) bytes of salt, \(saltBytes) are the least")
        let bytes = normalized(password)
        guard passwordBytes.contains(bytes.count) else {
            throw ServiceError(
                .badRequest,
                "the password's length is \(bytes.count): choose one of \(passwordBytes.lowerBound) to "
                    + "\(passwordBytes.upperBound) bytes in UTF-8")
        }
        var hash = PasswordHash(salt: salt, logN: logN, r: r, p: p, hash: [])
        guard let derived = derive(bytes, hash, byteCount: hashBytes) else {
            throw ServiceError(
                .internalError, "the password cannot be hashed: the node has not the 34 MiB of memory that it takes")
        }
        hash.hash = derived
        return hash
    }

    /// Whether this is the password that was hashed. Compares without stopping at the first difference.
    ///
    /// - Parameter hash: nil where there is no such account, or it has no password: that costs the same time, and is
    ///   false.
    package static func matches(_ password: String, _ hash: PasswordHash?) -> Bool {
        let bytes = normalized(password)
        // Tells nothing: it depends on what was sent alone.
        guard passwordBytes.contains(bytes.count) else { return false }
        let target = hash ?? PasswordHash(salt: decoySalt, logN: logN, r: r, p: p, hash: decoySalt + decoySalt)
        guard target.hash.count >= 16, let derived = derive(bytes, target, byteCount: target.hash.count) else {
            return false
        }
        var difference: UInt8 = 0
        for (left, right) in zip(derived, target.hash) { difference |= left ^ right }
        return difference == 0 && hash != nil
    }

    private static let decoySalt = [UInt8](repeating: 0x5A, count: saltBytes)

    private static func normalized(_ password: String) -> [UInt8] {
        // What is far too long is not worth normalising; the form NFC is at least a third of any form.
        guard password.utf8.count <= 3 * passwordBytes.upperBound else { return Array(password.utf8) }
        return Array(password.precomposedStringWithCanonicalMapping.utf8)
    }

    /// scrypt itself, with the parameters of a stored hash; nil where they are out of bounds or memory is lacking.
    package static func derive(_ password: [UInt8], _ parameters: PasswordHash, byteCount: Int) -> [UInt8]? {
        guard (1...24).contains(parameters.logN), (1...64).contains(parameters.r),
            (1...roundsMax).contains(parameters.p),
            128 * Int(parameters.r) << Int(parameters.logN) <= memoryBytesMax
        else { return nil }
        let key = try? KDF.Scrypt.deriveKey(
            from: password, salt: parameters.salt, outputByteCount: byteCount, rounds: 1 << Int(parameters.logN),
            blockSize: Int(parameters.r), parallelism: Int(parameters.p))
        return key.map { key in key.withUnsafeBytes { Array($0) } }
    }
}
