/// How a client names a user: at least one of the three.
package struct LookupInfo: Hashable, Sendable {
    /// 1 to 320 bytes of UTF-8; ASCII capitals and small letters count as equal. Nil if not stated.
    package var emailAddress: String?
    /// 1 to 320 bytes of UTF-8; finds nobody, because accounts have no phone numbers. Nil if not stated.
    package var phoneNumber: String?
    /// The user's record name in the container.
    package var userRecordName: String?

    package init(emailAddress: String? = nil, phoneNumber: String? = nil, userRecordName: String? = nil) {
        self.emailAddress = emailAddress
        self.phoneNumber = phoneNumber
        self.userRecordName = userRecordName
    }

    /// Bytes of an address or a number; the longest e-mail address has 254.
    private static let lengthMax = 320

    init(form json: JSONValue) throws(FormError) {
        let form = try Form(json)
        emailAddress = try Self.text("emailAddress", form)
        phoneNumber = try Self.text("phoneNumber", form)
        userRecordName = try form.string("userRecordName")
        if let userRecordName {
            try at("userRecordName") { () throws(FormError) in try Names.checkPrintable(userRecordName) }
        }
        if emailAddress == nil, phoneNumber == nil, userRecordName == nil {
            throw FormError("expected one of emailAddress, phoneNumber, userRecordName; none is there")
        }
    }

    private static func text(_ key: String, _ form: Form) throws(FormError) -> String? {
        guard let text = try form.string(key) else { return nil }
        guard (1...lengthMax).contains(text.utf8.count) else {
            throw FormError("has \(text.utf8.count) bytes, expected 1 to \(lengthMax)", at: key)
        }
        return text
    }
}

/// The body of users/discover.
package struct UsersDiscoverRequest: WebRequest, Hashable {
    /// At most `Limits.operationsMax`, in the order in which results must come.
    package var lookupInfos: [LookupInfo]

    package init(json: JSONValue) throws(ServiceError) {
        lookupInfos = try service { () throws(FormError) in
            try Form(json).array("lookupInfos", max: Limits.operationsMax) { json throws(FormError) in
                try LookupInfo(form: json)
            }
        }
    }
}

/// The body of users/lookup/email and users/lookup/id, the older forms of users/discover.
package struct UsersLookupRequest: WebRequest, Hashable {
    /// At most `Limits.operationsMax`, in the order in which results must come.
    package var users: [LookupInfo]

    package init(json: JSONValue) throws(ServiceError) {
        users = try service { () throws(FormError) in
            try Form(json).array("users", max: Limits.operationsMax) { json throws(FormError) in
                try LookupInfo(form: json)
            }
        }
    }

    /// The addresses, for users/lookup/email.
    /// - Throws: `BAD_REQUEST` if a user is named in another way; a retry does not help.
    package func emailAddresses() throws(ServiceError) -> [String] { try all(\.emailAddress, "emailAddress") }

    /// The record names, for users/lookup/id.
    /// - Throws: `BAD_REQUEST` if a user is named in another way; a retry does not help.
    package func userRecordNames() throws(ServiceError) -> [String] { try all(\.userRecordName, "userRecordName") }

    private func all(_ path: KeyPath<LookupInfo, String?>, _ key: String) throws(ServiceError) -> [String] {
        var found: [String] = []
        for (index, user) in users.enumerated() {
            guard let text = user[keyPath: path] else {
                throw ServiceError(.badRequest, "users[\(index)].\(key): is missing")
            }
            found.append(text)
        }
        return found
    }
}
