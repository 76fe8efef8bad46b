/// A user as others see it. One who is not discoverable has no names.
package struct UserIdentity: Hashable, Sendable {
    /// The user's record name in the container; nil hides it.
    package var userRecordName: String?
    package var givenName: String?
    package var familyName: String?
    /// How the user was asked for, which answers repeat.
    package var lookupInfo: LookupInfo?

    package init(
        userRecordName: String?, givenName: String? = nil, familyName: String? = nil, lookupInfo: LookupInfo? = nil
    ) {
        self.userRecordName = userRecordName
        self.givenName = givenName
        self.familyName = familyName
        self.lookupInfo = lookupInfo
    }
}

extension JSONWriter {
    /// A user's identity, as users/discover has it.
    package mutating func identity(_ identity: UserIdentity) {
        beginObject()
        identityMembers(identity)
        endObject()
    }

    /// The members of an identity, into an object that is open: users/caller has them at its top level, and the
    /// identity once more in `users`.
    package mutating func identityMembers(_ identity: UserIdentity) {
        if let name = identity.userRecordName { member("userRecordName", name) }
        if identity.givenName != nil || identity.familyName != nil {
            key("nameComponents")
            beginObject()
            if let name = identity.givenName { member("givenName", name) }
            if let name = identity.familyName { member("familyName", name) }
            endObject()
        }
        if let info = identity.lookupInfo {
            key("lookupInfo")
            beginObject()
            if let address = info.emailAddress { member("emailAddress", address) }
            if let number = info.phoneNumber { member("phoneNumber", number) }
            if let name = info.userRecordName { member("userRecordName", name) }
            endObject()
        }
    }

    /// A user as the older endpoints have it.
    package mutating func legacyUser(_ identity: UserIdentity) {
        beginObject()
        legacyUserMembers(identity)
        endObject()
    }

    /// The members of a user in the older form, into an object that is open: users/current has them at its top level.
    package mutating func legacyUserMembers(_ identity: UserIdentity) {
        if let name = identity.userRecordName { member("userRecordName", name) }
        if let name = identity.givenName { member("firstName", name) }
        if let name = identity.familyName { member("lastName", name) }
        if let address = identity.lookupInfo?.emailAddress { member("emailAddress", address) }
    }
}
