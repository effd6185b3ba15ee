"""What each change of a JSON Schema means, after Confluent's rules: one a line.

A schema reads old data when it accepts every value that the old one accepted. The exceptions are Confluent's: a
required property with a default may be new, and the policy LENIENT lets open content models gain properties.
"""

from typing import Final

from tidelog.schemas.base.comparison import CompatibilityRule

_KEYWORD = "The keyword at '{path}' in the {reader} schema is not in the {writer} schema, and refuses more values"
_MORE = "The value at '{path}' is larger in the {reader} schema than in the {writer} schema"
_LESS = "The value at '{path}' is smaller in the {reader} schema than in the {writer} schema"
_VALUE = "The value at '{path}' differs between the {reader} schema and the {writer} schema"
_TYPE = "The type at '{path}' differs between the {reader} schema and the {writer} schema"
_FEWER = "At '{path}' the {reader} schema accepts fewer kinds of values than the {writer} schema"
_DEMANDS = "At '{path}' the {reader} schema demands more than the {writer} schema"
_OPEN = "The {writer} schema accepts any property or item at '{path}', which the {reader} schema defines"
_REQUIRED = "The {reader} schema requires the property at '{path}', which the {writer} schema does not define"
_CLOSED = "The {reader} schema refuses the property or item at '{path}', which the {writer} schema defines"
_REMOVED = "What the {reader} schema accepts beside its own does not cover '{path}' of the {writer} schema"
_ADDED = "'{path}' of the {reader} schema does not cover what the {writer} schema accepts beside its own"
_NEEDED = "The {reader} schema requires the property at '{path}', which the {writer} schema leaves optional"
_FINE = "'{path}' changed, and the {reader} schema reads what the {writer} schema wrote"

_GOOD, _LENIENT, _BREAKS = (True, True), (False, True), (False, False)

_ROWS: Final[tuple[tuple[str, tuple[bool, bool], str], ...]] = (
    # any schema
    ("ID_CHANGED", _GOOD, _FINE),
    ("TITLE_CHANGED", _GOOD, _FINE),
    ("DESCRIPTION_CHANGED", _GOOD, _FINE),
    ("DEFAULT_CHANGED", _GOOD, _FINE),
    ("SCHEMA_ADDED", _BREAKS, _KEYWORD),
    ("SCHEMA_REMOVED", _GOOD, _FINE),
    ("TYPE_EXTENDED", _GOOD, _FINE),
    ("TYPE_NARROWED", _BREAKS, _TYPE),
    ("TYPE_CHANGED", _BREAKS, _TYPE),
    # strings
    ("MAX_LENGTH_ADDED", _BREAKS, _KEYWORD),
    ("MAX_LENGTH_REMOVED", _GOOD, _FINE),
    ("MAX_LENGTH_INCREASED", _GOOD, _FINE),
    ("MAX_LENGTH_DECREASED", _BREAKS, _LESS),
    ("MIN_LENGTH_ADDED", _BREAKS, _KEYWORD),
    ("MIN_LENGTH_REMOVED", _GOOD, _FINE),
    ("MIN_LENGTH_INCREASED", _BREAKS, _MORE),
    ("MIN_LENGTH_DECREASED", _GOOD, _FINE),
    ("PATTERN_ADDED", _BREAKS, _KEYWORD),
    ("PATTERN_REMOVED", _GOOD, _FINE),
    ("PATTERN_CHANGED", _BREAKS, _VALUE),
    # numbers
    ("MAXIMUM_ADDED", _BREAKS, _KEYWORD),
    ("MAXIMUM_REMOVED", _GOOD, _FINE),
    ("MAXIMUM_INCREASED", _GOOD, _FINE),
    ("MAXIMUM_DECREASED", _BREAKS, _LESS),
    ("MINIMUM_ADDED", _BREAKS, _KEYWORD),
    ("MINIMUM_REMOVED", _GOOD, _FINE),
    ("MINIMUM_INCREASED", _BREAKS, _MORE),
    ("MINIMUM_DECREASED", _GOOD, _FINE),
    ("EXCLUSIVE_MAXIMUM_ADDED", _BREAKS, _KEYWORD),
    ("EXCLUSIVE_MAXIMUM_REMOVED", _GOOD, _FINE),
    ("EXCLUSIVE_MAXIMUM_INCREASED", _GOOD, _FINE),
    ("EXCLUSIVE_MAXIMUM_DECREASED", _BREAKS, _LESS),
    ("EXCLUSIVE_MINIMUM_ADDED", _BREAKS, _KEYWORD),
    ("EXCLUSIVE_MINIMUM_REMOVED", _GOOD, _FINE),
    ("EXCLUSIVE_MINIMUM_INCREASED", _BREAKS, _MORE),
    ("EXCLUSIVE_MINIMUM_DECREASED", _GOOD, _FINE),
    ("MULTIPLE_OF_ADDED", _BREAKS, _KEYWORD),
    ("MULTIPLE_OF_REMOVED", _GOOD, _FINE),
    ("MULTIPLE_OF_EXPANDED", _BREAKS, _MORE),
    ("MULTIPLE_OF_REDUCED", _GOOD, _FINE),
    ("MULTIPLE_OF_CHANGED", _BREAKS, _VALUE),
    # objects
    ("REQUIRED_ATTRIBUTE_ADDED", _BREAKS, _NEEDED),
    ("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", _GOOD, _FINE),
    ("REQUIRED_ATTRIBUTE_REMOVED", _GOOD, _FINE),
    ("MAX_PROPERTIES_ADDED", _BREAKS, _KEYWORD),
    ("MAX_PROPERTIES_REMOVED", _GOOD, _FINE),
    ("MAX_PROPERTIES_INCREASED", _GOOD, _FINE),
    ("MAX_PROPERTIES_DECREASED", _BREAKS, _LESS),
    ("MIN_PROPERTIES_ADDED", _BREAKS, _KEYWORD),
    ("MIN_PROPERTIES_REMOVED", _GOOD, _FINE),
    ("MIN_PROPERTIES_INCREASED", _BREAKS, _MORE),
    ("MIN_PROPERTIES_DECREASED", _GOOD, _FINE),
    ("DEPENDENCY_ARRAY_ADDED", _BREAKS, _KEYWORD),
    ("DEPENDENCY_ARRAY_REMOVED", _GOOD, _FINE),
    ("DEPENDENCY_ARRAY_EXTENDED", _BREAKS, _DEMANDS),
    ("DEPENDENCY_ARRAY_NARROWED", _GOOD, _FINE),
    ("DEPENDENCY_ARRAY_CHANGED", _BREAKS, _VALUE),
    ("DEPENDENCY_SCHEMA_ADDED", _BREAKS, _KEYWORD),
    ("DEPENDENCY_SCHEMA_REMOVED", _GOOD, _FINE),
    ("ADDITIONAL_PROPERTIES_ADDED", _GOOD, _FINE),
    ("ADDITIONAL_PROPERTIES_REMOVED", _LENIENT, _KEYWORD),
    ("ADDITIONAL_PROPERTIES_EXTENDED", _GOOD, _FINE),
    ("ADDITIONAL_PROPERTIES_NARROWED", _LENIENT, _FEWER),
    ("UNEVALUATED_PROPERTIES_ADDED", _GOOD, _FINE),
    ("UNEVALUATED_PROPERTIES_REMOVED", _LENIENT, _KEYWORD),
    ("UNEVALUATED_PROPERTIES_EXTENDED", _GOOD, _FINE),
    ("UNEVALUATED_PROPERTIES_NARROWED", _LENIENT, _FEWER),
    # properties that one of two schemas has: open content models accept any property, closed ones none, partially
    # open ones those of patternProperties or of a schema in additionalProperties
    ("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", _LENIENT, _CLOSED),
    ("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", _GOOD, _FINE),
    ("PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _LENIENT, _REMOVED),
    ("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", _BREAKS, _REQUIRED),
    ("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL", _LENIENT, _OPEN),
    ("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", _LENIENT, _OPEN),
    ("PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _LENIENT, _ADDED),
    ("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", _BREAKS, _REQUIRED),
    ("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", _GOOD, _FINE),
    # arrays
    ("MAX_ITEMS_ADDED", _BREAKS, _KEYWORD),
    ("MAX_ITEMS_REMOVED", _GOOD, _FINE),
    ("MAX_ITEMS_INCREASED", _GOOD, _FINE),
    ("MAX_ITEMS_DECREASED", _BREAKS, _LESS),
    ("MIN_ITEMS_ADDED", _BREAKS, _KEYWORD),
    ("MIN_ITEMS_REMOVED", _GOOD, _FINE),
    ("MIN_ITEMS_INCREASED", _BREAKS, _MORE),
    ("MIN_ITEMS_DECREASED", _GOOD, _FINE),
    ("MAX_CONTAINS_ADDED", _BREAKS, _KEYWORD),
    ("MAX_CONTAINS_REMOVED", _GOOD, _FINE),
    ("MAX_CONTAINS_INCREASED", _GOOD, _FINE),
    ("MAX_CONTAINS_DECREASED", _BREAKS, _LESS),
    ("MIN_CONTAINS_ADDED", _BREAKS, _KEYWORD),
    ("MIN_CONTAINS_REMOVED", _GOOD, _FINE),
    ("MIN_CONTAINS_INCREASED", _BREAKS, _MORE),
    ("MIN_CONTAINS_DECREASED", _GOOD, _FINE),
    ("UNIQUE_ITEMS_ADDED", _BREAKS, _KEYWORD),
    ("UNIQUE_ITEMS_REMOVED", _GOOD, _FINE),
    ("ADDITIONAL_ITEMS_ADDED", _GOOD, _FINE),
    ("ADDITIONAL_ITEMS_REMOVED", _BREAKS, _KEYWORD),
    ("ADDITIONAL_ITEMS_EXTENDED", _GOOD, _FINE),
    ("ADDITIONAL_ITEMS_NARROWED", _BREAKS, _FEWER),
    ("UNEVALUATED_ITEMS_ADDED", _GOOD, _FINE),
    ("UNEVALUATED_ITEMS_REMOVED", _BREAKS, _KEYWORD),
    ("UNEVALUATED_ITEMS_EXTENDED", _GOOD, _FINE),
    ("UNEVALUATED_ITEMS_NARROWED", _BREAKS, _FEWER),
    ("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", _BREAKS, _CLOSED),
    ("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", _GOOD, _FINE),
    ("ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _BREAKS, _REMOVED),
    ("ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", _BREAKS, _OPEN),
    ("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", _GOOD, _FINE),
    ("ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _GOOD, _FINE),
    ("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", _BREAKS, _ADDED),
    # values
    ("ENUM_ARRAY_EXTENDED", _GOOD, _FINE),
    ("ENUM_ARRAY_NARROWED", _BREAKS, _FEWER),
    ("ENUM_ARRAY_CHANGED", _BREAKS, _VALUE),
    # allOf (a product type), anyOf and oneOf (sum types), not
    ("COMBINED_TYPE_EXTENDED", _GOOD, _FINE),
    ("COMBINED_TYPE_CHANGED", _BREAKS, _TYPE),
    ("COMBINED_TYPE_SUBSCHEMAS_CHANGED", _BREAKS, _TYPE),
    ("PRODUCT_TYPE_EXTENDED", _BREAKS, _DEMANDS),
    ("PRODUCT_TYPE_NARROWED", _GOOD, _FINE),
    ("SUM_TYPE_EXTENDED", _GOOD, _FINE),
    ("SUM_TYPE_NARROWED", _BREAKS, _FEWER),
    ("NOT_TYPE_EXTENDED", _BREAKS, _DEMANDS),
    ("NOT_TYPE_NARROWED", _GOOD, _FINE),
)

RULES: Final = {name: CompatibilityRule(name, *verdict, sentence) for name, verdict, sentence in _ROWS}
