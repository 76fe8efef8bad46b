/// The body of assets/upload.
package struct AssetsUploadRequest: WebRequest, Hashable {
    /// A field of a record that a file is to be uploaded for.
    package struct Token: Hashable, Sendable {
        /// Nil asks the server to make a name. The upload is not bound to it.
        package var recordName: String?
        /// The record's type.
        package var recordType: String
        /// The field, or list of files, it is about.
        package var fieldName: String
        /// Bytes of the file; nil where the client does not say. CloudKit has no such member: an extension of ours, by
        /// which larger files are announced.
        package var size: UInt64?
    }

    /// The zone of the records.
    package var zoneID: ZoneID
    /// At most `Limits.operationsMax`, in the order in which results must come.
    package var tokens: [Token]

    /// - Throws: `BAD_REQUEST` naming the member at fault.
    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try Self(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        zoneID = try form.zoneID()
        tokens = try form.array("tokens", max: Limits.operationsMax) { json throws(FormError) in
            try Self.token(Form(json))
        }
    }

    private static func token(_ form: Form) throws(FormError) -> Token {
        let recordName = try form.recordName()
        let type = try form.identifier("recordType")
        var token = Token(recordName: recordName, recordType: type, fieldName: try form.identifier("fieldName"))
        if let size = try form.integer("size") {
            guard let bytes = UInt64(exactly: size), bytes <= AssetReference.sizeMax else {
                throw FormError("expected 0 to \(AssetReference.sizeMax) bytes, found \(size)", at: "size")
            }
            token.size = bytes
        }
        return token
    }
}

/// The body of assets/rereference.
package struct AssetsRereferenceRequest: WebRequest, Hashable {
    /// A field of a record whose asset is to be saved in other records, too.
    package struct Item: Hashable, Sendable {
        /// The record that has the file.
        package var recordName: String
        /// The field, or list of files, it is about.
        package var fieldName: String
    }

    /// The zone of the records that have the assets.
    package var zoneID: ZoneID
    /// The zone of the records that are to have them.
    package var targetZoneID: ZoneID
    /// At most `Limits.operationsMax`, in the order in which results must come.
    package var assets: [Item]

    /// - Throws: `BAD_REQUEST` naming the member at fault.
    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try Self(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        let zone = try form.zoneID()
        zoneID = zone
        targetZoneID = try form.nested("targetZoneID") { json throws(FormError) in try ZoneID(form: json) } ?? zone
        assets = try form.array("assets", max: Limits.operationsMax) { json throws(FormError) in
            let item = try Form(json)
            guard let name = try item.recordName() else { throw FormError("is missing", at: "recordName") }
            return Item(recordName: name, fieldName: try item.identifier("fieldName"))
        }
    }
}

extension Form {
    fileprivate func recordName() throws(FormError) -> String? {
        try nested("recordName") { json throws(FormError) in
            guard case .string(let name) = json else { throw .expected("a string", json) }
            try Names.checkRecord(name, mayCreate: false)
            return name
        }
    }

    /// The name of a type or a field, which must be there.
    fileprivate func identifier(_ key: String) throws(FormError) -> String {
        guard let name = try string(key) else { throw FormError("is missing", at: key) }
        try at(key) { () throws(FormError) in try Names.checkIdentifier(name) }
        return name
    }
}

/// What a client writes as the value of an ASSET field: what an upload answered, or what a read did.
package struct AssetInput: Hashable, Sendable {
    /// Gives the right to save the file; nil where the field is to keep what it has.
    package var receipt: String?
    /// As reads show it.
    package var fileChecksum: String?
    /// Bytes.
    package var size: UInt64?

    /// Reads an asset dictionary. What clients echo beside these members is ignored.
    init(form json: JSONValue) throws(FormError) {
        guard case .object = json else { throw .invalid(FieldType(.asset), json) }
        let form = try Form(json)
        receipt = try form.token("receipt")
        fileChecksum = try form.token("fileChecksum")
        guard receipt != nil || fileChecksum != nil else {
            throw .invalid(.asset, "a receipt is missing: the dictionary that the upload answered with is expected")
        }
        guard let size = try form.integer("size") else { return }
        guard let bytes = UInt64(exactly: size) else { throw FormError("\(size) is no number of bytes", at: "size") }
        self.size = bytes
    }
}

/// Finds the file that a client's asset dictionary stands for. Receipts are judged outside, by who knows the keys.
package struct AssetResolver: Sendable {
    /// - Throws: what is wrong with the dictionary.
    package typealias Resolve = @Sendable (AssetInput, _ field: String) throws(AssetFault) -> AssetReference

    let resolve: Resolve

    /// - Parameter resolve: finds the file of a dictionary.
    package init(_ resolve: @escaping Resolve) { self.resolve = resolve }

    /// The values of one field.
    func resolver(of field: String) -> ValueConverter.Assets {
        { json throws(FormError) in
            let input = try AssetInput(form: json)
            do throws(AssetFault) {
                return try resolve(input, field)
            } catch {
                throw FormError(error.problem, at: error.member)
            }
        }
    }

    /// Takes every dictionary for the same file: for who wants to know a value's type only.
    static let typesOnly = AssetResolver { (_, _) throws(AssetFault) in
        AssetReference(sha256: [UInt8](repeating: 0, count: AssetReference.hashBytes), size: 0)
    }
}

/// What is wrong with an asset dictionary.
package struct AssetFault: Error, Hashable, Sendable {
    /// The member at fault.
    package var member: String
    /// What is wrong with it, in words that follow its path in the error, such as `has expired`.
    package var problem: String

    /// - Parameter member: the one at fault, such as `receipt`.
    package init(_ member: String, _ problem: String) {
        self.member = member
        self.problem = problem
    }
}

/// How an asset is shown to a client.
package struct AssetDictionary: Hashable, Sendable {
    /// Base64; the same for equal files of a container.
    package var fileChecksum: String?
    /// Bytes.
    package var size: UInt64
    /// Where the bytes are; nil for who may not read the record.
    package var downloadURL: String?
    /// Lets its holder save the file in a record.
    package var receipt: String?
    /// Base64, of no use here: clients expect it of an upload.
    package var wrappingKey: String?
    /// Base64, of no use here: clients expect it of an upload.
    package var referenceChecksum: String?

    /// With its size alone.
    package init(size: UInt64) { self.size = size }
}

/// Makes the dictionaries of a record's assets.
package struct AssetPresenter: Sendable {
    /// Makes the dictionary of a field's file.
    package typealias Present = @Sendable (AssetReference, _ field: String) -> AssetDictionary

    let present: Present

    /// - Parameter present: makes a file's dictionary.
    package init(_ present: @escaping Present) { self.present = present }
}

extension JSONWriter {
    /// An asset dictionary.
    package mutating func asset(_ asset: AssetDictionary) {
        beginObject()
        if let text = asset.fileChecksum { member("fileChecksum", text) }
        member("size", integer: Int64(clamping: asset.size))
        if let text = asset.downloadURL { member("downloadURL", text) }
        if let text = asset.receipt { member("receipt", text) }
        if let text = asset.wrappingKey { member("wrappingKey", text) }
        if let text = asset.referenceChecksum { member("referenceChecksum", text) }
        endObject()
    }
}
