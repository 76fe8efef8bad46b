public import Foundation
import Synchronization

/// What a subscription's notifications look like: `CKSubscription.NotificationInfo`.
///
/// May be set from any task; a subscription keeps a copy. Equal by value.
public final class CKNotificationInfo: NSObject, NSSecureCoding, NSCopying, Sendable {
    private let state: Mutex<Content>

    private struct Content: Codable, Equatable, Sendable {
        var alert = Text()
        var title = Text()
        var subtitle = Text()
        var alertActionLocalizationKey: String?
        var alertLaunchImage: String?
        var soundName: String?
        var desiredKeys: [String]?
        var shouldBadge = false
        var shouldSendContentAvailable = false
        var shouldSendMutableContent = false
        var category: String?
        var collapseIDKey: String?
    }

    /// A text as it is, or a key into the app's own texts with the fields that fill its gaps.
    private struct Text: Codable, Equatable, Sendable {
        var body: String?
        var key: String?
        var arguments: [String]?

        init(_ body: String? = nil, key: String? = nil, _ arguments: [String] = []) {
            (self.body, self.key) = (body, key)
            self.arguments = arguments.isEmpty ? nil : arguments
        }
    }

    /// A notification that shows nothing.
    public override init() {
        state = Mutex(Content())
        super.init()
    }

    private init(_ content: Content) { state = Mutex(content) }

    /// A notification with all that is to be said of it.
    public convenience init(
        alertBody: String? = nil, alertLocalizationKey: String? = nil,
        alertLocalizationArgs: [CKRecord.FieldKey] = [], title: String? = nil, titleLocalizationKey: String? = nil,
        titleLocalizationArgs: [CKRecord.FieldKey] = [], subtitle: String? = nil,
        subtitleLocalizationKey: String? = nil, subtitleLocalizationArgs: [CKRecord.FieldKey] = [],
        alertActionLocalizationKey: String? = nil, alertLaunchImage: String? = nil, soundName: String? = nil,
        desiredKeys: [CKRecord.FieldKey] = [], shouldBadge: Bool = false, shouldSendContentAvailable: Bool = false,
        shouldSendMutableContent: Bool = false, category: String? = nil, collapseIDKey: String? = nil
    ) {
        self.init(
            Content(
                alert: Text(alertBody, key: alertLocalizationKey, alertLocalizationArgs),
                title: Text(title, key: titleLocalizationKey, titleLocalizationArgs),
                subtitle: Text(subtitle, key: subtitleLocalizationKey, subtitleLocalizationArgs),
                alertActionLocalizationKey: alertActionLocalizationKey, alertLaunchImage: alertLaunchImage,
                soundName: soundName, desiredKeys: desiredKeys.isEmpty ? nil : desiredKeys, shouldBadge: shouldBadge,
                shouldSendContentAvailable: shouldSendContentAvailable,
                shouldSendMutableContent: shouldSendMutableContent, category: category, collapseIDKey: collapseIDKey))
    }

    private subscript<Value: Sendable>(path: WritableKeyPath<Content, Value>) -> Value {
        get { state.withLock { $0[keyPath: path] } }
        set { state.withLock { $0[keyPath: path] = newValue } }
    }

    /// The text that is shown.
    public var alertBody: String? {
        get { self[\.alert.body] }
        set { self[\.alert.body] = newValue }
    }
    /// The key of the text in the app's own texts.
    public var alertLocalizationKey: String? {
        get { self[\.alert.key] }
        set { self[\.alert.key] = newValue }
    }
    /// The record's fields that fill the text's gaps.
    public var alertLocalizationArgs: [CKRecord.FieldKey]? {
        get { self[\.alert.arguments] }
        set { self[\.alert.arguments] = newValue }
    }
    /// The line above the text.
    public var title: String? {
        get { self[\.title.body] }
        set { self[\.title.body] = newValue }
    }
    /// The key of the title in the app's own texts.
    public var titleLocalizationKey: String? {
        get { self[\.title.key] }
        set { self[\.title.key] = newValue }
    }
    /// The record's fields that fill the title's gaps.
    public var titleLocalizationArgs: [CKRecord.FieldKey]? {
        get { self[\.title.arguments] }
        set { self[\.title.arguments] = newValue }
    }
    /// The line below the title.
    public var subtitle: String? {
        get { self[\.subtitle.body] }
        set { self[\.subtitle.body] = newValue }
    }
    /// The key of the subtitle in the app's own texts.
    public var subtitleLocalizationKey: String? {
        get { self[\.subtitle.key] }
        set { self[\.subtitle.key] = newValue }
    }
    /// The record's fields that fill the subtitle's gaps.
    public var subtitleLocalizationArgs: [CKRecord.FieldKey]? {
        get { self[\.subtitle.arguments] }
        set { self[\.subtitle.arguments] = newValue }
    }
    /// The key of the button's text in the app's own texts.
    public var alertActionLocalizationKey: String? {
        get { self[\.alertActionLocalizationKey] }
        set { self[\.alertActionLocalizationKey] = newValue }
    }
    /// The picture that shows while the app starts.
    public var alertLaunchImage: String? {
        get { self[\.alertLaunchImage] }
        set { self[\.alertLaunchImage] = newValue }
    }
    /// The name of the sound, `default` for the system's.
    public var soundName: String? {
        get { self[\.soundName] }
        set { self[\.soundName] = newValue }
    }
    /// The record's fields that come with the notification; at most three.
    public var desiredKeys: [CKRecord.FieldKey]? {
        get { self[\.desiredKeys] }
        set { self[\.desiredKeys] = newValue }
    }
    /// Whether the number on the app's icon grows.
    public var shouldBadge: Bool {
        get { self[\.shouldBadge] }
        set { self[\.shouldBadge] = newValue }
    }
    /// Whether the app is woken to fetch what is new.
    public var shouldSendContentAvailable: Bool {
        get { self[\.shouldSendContentAvailable] }
        set { self[\.shouldSendContentAvailable] = newValue }
    }
    /// Whether the app may change the notification before it shows.
    public var shouldSendMutableContent: Bool {
        get { self[\.shouldSendMutableContent] }
        set { self[\.shouldSendMutableContent] = newValue }
    }
    /// The group of actions that go with it.
    public var category: String? {
        get { self[\.category] }
        set { self[\.category] = newValue }
    }
    /// The record's field by which notifications replace each other.
    public var collapseIDKey: String? {
        get { self[\.collapseIDKey] }
        set { self[\.collapseIDKey] = newValue }
    }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKNotificationInfo else { return false }
        let (mine, theirs) = (state.withLock { $0 }, other.state.withLock { $0 })
        return mine == theirs
    }

    /// Equal for equal objects.
    public override var hash: Int { state.withLock { $0.alert.body.hashValue } }

    /// One of its own with the same content.
    public func copy(with zone: NSZone? = nil) -> Any { CKNotificationInfo(state.withLock { $0 }) }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }
    /// Archives the object.
    public func encode(with coder: NSCoder) { coder.write(codable: state.withLock { $0 }, "Content") }

    /// Nil where the archive holds none.
    public convenience init?(coder: NSCoder) {
        guard let content = coder.codable(Content.self, "Content") else { return nil }
        self.init(content)
    }
}
