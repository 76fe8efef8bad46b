import Crypto
import Foundation
package import RecordModel
package import Wire

/// One person or program with private data.
package struct Account: Hashable, Sendable {
    /// Random, 32 hexadecimal digits; never shown to clients.
    package var id: String
    /// What an administrator calls it; unique, in Unicode's composed form (NFC).
    @Bytewise package var name: String
    /// Milliseconds since 1970.
    package var created: Int64
    /// By which others may look the account up; unique, capital letters or not.
    package var email: String?
    /// Shown to other users only where `isDiscoverable` is true.
    package var givenName: String?
    /// Shown to other users only where `isDiscoverable` is true.
    package var familyName: String?
    /// Whether other users may learn the names.
    package var isDiscoverable: Bool
    /// Nil: the account cannot sign in by a password.
    package var password: PasswordHash?
    /// Unique.
    package var identity: ExternalIdentity?

    package init(
        id: String, name: String, created: Int64, email: String? = nil, givenName: String? = nil,
        familyName: String? = nil, isDiscoverable: Bool = false, password: PasswordHash? = nil,
        identity: ExternalIdentity? = nil
    ) {
        self.id = id
        self.name = name
        self.created = created
        self.email = email
        self.givenName = givenName
        self.familyName = familyName
        self.isDiscoverable = isDiscoverable
        self.password = password
        self.identity = identity
    }

    /// The account's user record name in a container: opaque, and different in each, so that two containers cannot tell
    /// that they share a user.
    package static func userRecordName(accountID: String, container: String) -> String {
        "_" + Hex.encode(userRecordDigest(accountID: accountID, container: container))
    }

    /// The 16 bytes whose hexadecimal digits are the user record name.
    static func userRecordDigest(accountID: String, container: String) -> [UInt8] {
        Array(SHA256.hash(data: Array("zonekeeper user/\(accountID)/\(container)".utf8)).prefix(16))
    }

    /// Whether a text is one line of what can be seen: no control characters, line separators, marks that change the
    /// direction of writing, or characters of no width, by which two names look alike.
    package static func isPlainLine(_ text: some StringProtocol) -> Bool {
        text.unicodeScalars.allSatisfy { !AuditText.isHidden($0) }
    }

    /// The form in which names are compared: Unicode's composed form (NFC).
    package static func comparable(name: String) -> String {
        name.utf8.allSatisfy { $0 < 0x80 } ? name : name.precomposedStringWithCanonicalMapping
    }

    /// The form in which addresses are compared: ASCII capitals become small letters.
    package static func comparable(email: some StringProtocol) -> String {
        String(
            decoding: email.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 },
            as: UTF8.self)
    }
}

/// What an administrator changes of an account; what is nil stays as it is, the empty string clears.
package struct AccountChanges: Hashable, Sendable {
    /// The new address; the empty string clears it. The address of another account is refused with `EXISTS`.
    package var email: String?
    /// The new given name; the empty string clears it.
    package var givenName: String?
    /// The new family name; the empty string clears it.
    package var familyName: String?
    /// Whether other users may learn the names; nil keeps the present choice.
    package var isDiscoverable: Bool?
    /// `ExternalIdentity.none` clears.
    package var identity: ExternalIdentity?

    package init(
        email: String? = nil, givenName: String? = nil, familyName: String? = nil, isDiscoverable: Bool? = nil,
        identity: ExternalIdentity? = nil
    ) {
        self.email = email
        self.givenName = givenName
        self.familyName = familyName
        self.isDiscoverable = isDiscoverable
        self.identity = identity
    }

    /// Whether nothing is to be changed.
    package var isEmpty: Bool { self == AccountChanges() }

    /// Changes an account so.
    package func apply(to account: inout Account) {
        if let email { account.email = email.isEmpty ? nil : email }
        if let givenName { account.givenName = givenName.isEmpty ? nil : givenName }
        if let familyName { account.familyName = familyName.isEmpty ? nil : familyName }
        if let isDiscoverable { account.isDiscoverable = isDiscoverable }
        if let identity { account.identity = identity == .none ? nil : identity }
    }
}

extension Account: WireMessage {
    package static var blank: Self { Account(id: "", name: "", created: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &id)
        try wire.field(2, &name)
        try wire.field(3, &created)
        try wire.field(4, &email)
        try wire.field(5, &givenName)
        try wire.field(6, &familyName)
        try wire.field(7, &isDiscoverable, unless: false)
        try wire.field(8, &password)
        try wire.field(9, &identity)
    }
}

extension AccountChanges: WireMessage {
    package static var blank: Self { AccountChanges() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &email)
        try wire.field(2, &givenName)
        try wire.field(3, &familyName)
        try wire.field(4, &isDiscoverable)
        try wire.field(5, &identity)
    }
}

/// Who an account is at an OpenID Connect issuer; belongs to one account at most.
package struct ExternalIdentity: Hashable, Sendable {
    /// The issuer's URL, as its tokens have it.
    @Bytewise package var issuer: String
    /// The issuer's name for the user; never given to another one.
    @Bytewise package var subject: String

    package init(issuer: String, subject: String) {
        self.issuer = issuer
        self.subject = subject
    }

    /// Whether a text may be a subject: 1 to 255 ASCII characters, as OpenID Connect Core 1.0 says in section 2.
    package static func isSubject(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { $0 < 0x80 }
    }

    /// In changes of an account: that it shall have no identity any more.
    package static let none = ExternalIdentity(issuer: "", subject: "")
}

extension ExternalIdentity: WireMessage {
    package static var blank: Self { ExternalIdentity(issuer: "", subject: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &issuer)
        try wire.field(2, &subject)
    }
}

/// What is kept of a password: the result of scrypt, with what it takes to compute it again. Data only; who hashes and
/// compares is the target Admission.
package struct PasswordHash: Hashable, Sendable {
    /// Random, 16 bytes.
    package var salt: [UInt8]
    /// The binary logarithm of scrypt's N.
    package var logN: UInt8
    /// scrypt's r, the block size in units of 128 bytes: a hash takes 128 * N * r bytes of memory.
    package var r: UInt32
    /// scrypt's p, the number of rounds over that memory.
    package var p: UInt32
    /// scrypt's output: 32 bytes in hashes that this build makes.
    package var hash: [UInt8]

    package init(salt: [UInt8], logN: UInt8, r: UInt32, p: UInt32, hash: [UInt8]) {
        self.salt = salt
        self.logN = logN
        self.r = r
        self.p = p
        self.hash = hash
    }
}

extension PasswordHash: WireMessage {
    package static var blank: Self { PasswordHash(salt: [], logN: 0, r: 0, p: 0, hash: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &salt)
        try wire.field(2, &logN)
        try wire.field(3, &r)
        try wire.field(4, &p)
        try wire.field(5, &hash)
    }
}

/// The failed sign-ins of an account since the last one that succeeded, and until when its password is not looked at.
package struct Lockout: Hashable, Sendable {
    /// Those that count; at most `failuresMax`.
    package var failures: UInt64
    /// Milliseconds since 1970; 0 while nothing was locked.
    package var lockedUntil: Int64
    /// When the last failure was, in milliseconds since 1970.
    package var lastFailure: Int64

    /// Failures that lock nothing.
    package static let failuresFree: UInt64 = 5
    /// The first number of failures that locks for the longest time; no more are counted.
    package static let failuresMax: UInt64 = 16
    /// How long the account is locked at most.
    package static let pauseMaxMilliseconds: Int64 = 15 * 60 * 1_000
    /// Time without a failure after which one is forgiven. In the long run that is how often somebody may guess.
    package static let forgivenAfterMilliseconds: Int64 = 15 * 60 * 1_000

    package init(failures: UInt64, lockedUntil: Int64, lastFailure: Int64 = 0) {
        self.failures = failures
        self.lockedUntil = lockedUntil
        self.lastFailure = lastFailure
    }

    /// What follows from so many failures, the last one at `time` (milliseconds since 1970): the first five lock
    /// nothing, the sixth locks for a second, and each further one for twice as long, up to 15 minutes.
    package static func after(failures: UInt64, time: Int64) -> Lockout {
        guard failures > failuresFree else { return Lockout(failures: failures, lockedUntil: 0, lastFailure: time) }
        let doublings = min(failures - failuresFree - 1, 20)
        let pause = min(1_000 << Int64(doublings), pauseMaxMilliseconds)
        let (until, overflow) = time.addingReportingOverflow(pause)
        return Lockout(failures: failures, lockedUntil: overflow ? .max : until, lastFailure: time)
    }

    /// With one more failure, after forgiving those that time has healed.
    ///
    /// A clock that is behind neither shortens what another one's began nor heals anything.
    package func counting(failureAt time: Int64) -> Lockout {
        let (difference, overflow) = time.subtractingReportingOverflow(lastFailure)
        let quiet = overflow ? (time > lastFailure ? Int64.max : 0) : max(0, difference)
        let forgiven = UInt64(quiet / Self.forgivenAfterMilliseconds)
        let count = failures - min(failures, forgiven)
        var next = Lockout.after(failures: min(count + 1, Self.failuresMax), time: time)
        next.lockedUntil = max(next.lockedUntil, lockedUntil)
        next.lastFailure = max(time, lastFailure)
        return next
    }

    /// Whether a sign-in is refused at `now`, in milliseconds since 1970.
    package func isLocked(at now: Int64) -> Bool { now < lockedUntil }
}

extension Lockout: WireMessage {
    package static var blank: Self { Lockout(failures: 0, lockedUntil: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &failures)
        try wire.field(2, &lockedUntil)
        try wire.field(3, &lastFailure)
    }
}
