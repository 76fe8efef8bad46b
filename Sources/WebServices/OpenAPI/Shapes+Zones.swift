import RecordModel

extension OpenAPIDocument {
    static let zoneShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "ZoneID", "",
            .answer([
                .need("zoneName", .text), .may("ownerRecordName", .text),
                .may("zoneType", .texts("DEFAULT_ZONE", "REGULAR_CUSTOM_ZONE")),
            ])
        ),
        (
            "ZoneIDInput", "",
            .request([.may("zoneName", .text, "`_defaultZone` by default."), .may("ownerRecordName", .text)])
        ),
        (
            "Zone", "",
            .answer([
                .need("zoneID", .reference("ZoneID")),
                .may("syncToken", .base64, "The zone's change token now; only for zones with a change feed."),
                .need("atomic", .boolean, "Whether the zone takes atomic batches."),
            ])
        ),
        (
            "DeletedZone", "",
            .answer([.need("zoneID", .reference("ZoneID")), .need("deleted", .exactly(true))])
        ),
        ("ZonesListResponse", "", .answer([.need("zones", .array(.reference("Zone")))])),
        (
            "ZonesLookupRequest", "",
            .request([.need("zones", .array(.reference("ZoneIDInput"), maxItems: Limits.operationsMax))])
        ),
        (
            "ZonesLookupResponse", "",
            .answer([.need("zones", .array(.anyOf([.reference("Zone"), .reference("ZoneError")])))])
        ),
        (
            "ZonesModifyRequest", "",
            .request([
                .need(
                    "operations",
                    .array(
                        .request([
                            .need("operationType", .texts("create", "delete")),
                            .need("zone", .request([.need("zoneID", .reference("ZoneIDInput"))])),
                        ]), maxItems: Limits.operationsMax))
            ])
        ),
        (
            "ZonesModifyResponse", "",
            .answer([
                .need(
                    "zones",
                    .array(.anyOf([.reference("Zone"), .reference("DeletedZone"), .reference("ZoneError")])))
            ])
        ),
    ]

    static let changeShapes: [(name: String, description: String, shape: Shape)] = [
        (
            "ZoneChangesWanted", "What is wanted of one zone; what is missing stands beside `zones`, for all.",
            .request([.need("zoneID", .reference("ZoneIDInput"))] + feedMembers)
        ),
        (
            "ZoneChangesRequest", "",
            .request(
                [.need("zones", .array(.reference("ZoneChangesWanted"), maxItems: Limits.operationsMax))]
                    + feedMembers)
        ),
        (
            "ChangedRecord", "",
            .anyOf([.reference("Record"), .reference("Tombstone")])
        ),
        (
            "ZoneChanges", "",
            .answer([.need("zoneID", .reference("ZoneID"))] + feedAnswerMembers)
        ),
        (
            "ZoneChangesResponse", "",
            .answer([.need("zones", .array(.anyOf([.reference("ZoneChanges"), .reference("ZoneError")])))])
        ),
        (
            "RecordChangesRequest", "",
            .request([.need("zoneID", .reference("ZoneIDInput"))] + feedMembers)
        ),
        ("RecordChangesResponse", "", .answer(feedAnswerMembers)),
        ("DatabaseChangesRequest", "", .request([tokenMember, limitMember])),
        (
            "DatabaseChangesResponse", "",
            .answer([
                .need(
                    "zones",
                    .array(.anyOf([.answer([.need("zoneID", .reference("ZoneID"))]), .reference("DeletedZone")]))),
                .need("moreComing", .boolean), .need("syncToken", .base64),
            ])
        ),
        (
            "ZonesChangesRequest", "",
            .request([.may("metaSyncToken", .text.orNull), tokenMember, limitMember])
        ),
        (
            "ZonesChangesResponse", "",
            .answer([
                .need("zones", .array(.anyOf([.reference("Zone"), .reference("DeletedZone")]))),
                .need("moreComing", .boolean), .need("syncToken", .base64),
                .need("metaSyncToken", .base64, "The same as syncToken."),
            ])
        ),
    ]

    private static let tokenMember = ShapeMember.may(
        "syncToken", .text.orNull, "Where the page before ended; missing, null or empty is the beginning.")

    private static let feedMembers: [ShapeMember] =
        [
            tokenMember, limitMember,
            .may("desiredKeys", .array(.text).orNull), .may("desiredRecordTypes", .array(.text).orNull),
            .may("reverse", .boolean, "Newest first. The direction is part of the tokens that come back."),
            .may("numbersAsStrings", .boolean),
        ]

    private static let feedAnswerMembers: [ShapeMember] = [
        .need("records", .array(.reference("ChangedRecord"), maxItems: Limits.recordsPerPageMax)),
        .need("moreComing", .boolean, "Whether to ask again; a page may be empty and have more coming."),
        .need("syncToken", .base64, "What to ask with next time."),
        .may("reverse", .boolean),
    ]

    static let userShapes: [(name: String, description: String, shape: Shape)] = [
        ("LookupInfo", "How a user is asked for.", .request(lookupMembers)),
        ("UserIdentity", "A user. One who is not discoverable has no name.", .answer(identityMembers)),
        (
            "UsersCallerResponse", "The caller, and once more in `users`.",
            .answer(identityMembers + [.need("users", .array(.reference("UserIdentity")))])
        ),
        ("LegacyUser", "A user as the older endpoints have it.", .answer(legacyMembers)),
        (
            "UsersDiscoverRequest", "",
            .request([.need("lookupInfos", .array(.reference("LookupInfo"), maxItems: Limits.operationsMax))])
        ),
        ("UsersResponse", "", .answer([.need("users", .array(.reference("UserIdentity")))])),
        (
            "UsersLookupRequest", "",
            .request([.need("users", .array(.reference("LookupInfo"), maxItems: Limits.operationsMax))])
        ),
        ("LegacyUsersResponse", "", .answer([.need("users", .array(.reference("LegacyUser")))])),
    ]

    private static let lookupMembers: [ShapeMember] = [
        .may("emailAddress", .text), .may("phoneNumber", .text), .may("userRecordName", .text),
    ]

    private static let identityMembers: [ShapeMember] = [
        .may("userRecordName", .text),
        .may("nameComponents", .answer([.may("givenName", .text), .may("familyName", .text)])),
        .may("lookupInfo", .answer(lookupMembers)),
    ]

    private static let legacyMembers: [ShapeMember] = [
        .may("userRecordName", .text), .may("firstName", .text), .may("lastName", .text), .may("emailAddress", .text),
    ]
}
