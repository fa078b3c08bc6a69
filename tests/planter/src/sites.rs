//! Finds the expressions of a file that mutants change, and puts the conditions there.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::insertions::Insertions;
use crate::mutant::Mutant;

/// The text with the mutants, and the numbers of those that it has. The others have no place where
/// a condition can be.
pub(crate) fn plant(text: &str, mutants: &[Mutant<'_>]) -> (String, Vec<u32>) {
    let mut sites = Sites {
        text,
        mutants,
        insertions: Insertions::default(),
        planted: Vec::new(),
    };
    sites.visit_file(&syn::parse_file(text).expect("the file is Rust"));
    (sites.insertions.apply(text), sites.planted)
}

struct Sites<'a> {
    text: &'a str,
    mutants: &'a [Mutant<'a>],
    insertions: Insertions,
    planted: Vec<u32>,
}

impl Sites<'_> {
    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let returns_impl = matches!(
            &signature.output,
            syn::ReturnType::Type(_, returned) if matches!(**returned, syn::Type::ImplTrait(_))
        );
        let Some(first) = body.stmts.first().filter(|_| !returns_impl) else {
            return;
        };
        let start = first.span().byte_range().start;
        let mutants = self.mutants.iter();
        for mutant in mutants.filter(|mutant| mutant.changes("FnValue", first.span())) {
            let (number, value) = (mutant.number, mutant.replacement);
            let condition = format!("if ::planted::is({number}) {{ return {value}; }} ");
            self.insertions.before(start, &condition);
            self.planted.push(number);
        }
    }

    /// Puts the text that an expression has with each mutant of its parts before it: in
    /// parentheses, as it may be an operand.
    fn expression(&mut self, whole: Span, genre: &str, parts: &[Span]) {
        let parts: Vec<(&str, Span)> = parts.iter().map(|&part| (genre, part)).collect();
        self.alternatives(whole.byte_range(), &parts, ["(", ")"]);
    }

    fn alternatives(&mut self, whole: Range<usize>, parts: &[(&str, Span)], around: [&str; 2]) {
        let mut conditions = String::new();
        for (genre, part) in parts {
            let mutants = self.mutants.iter();
            for mutant in mutants.filter(|mutant| mutant.changes(genre, *part)) {
                let number = mutant.number;
                let text = mutant.within(self.text, &whole, part.byte_range());
                conditions += &format!("if ::planted::is({number}) {{ {text} }} else ");
                self.planted.push(number);
            }
        }
        if !conditions.is_empty() {
            let [left, right] = around;
            let (opening, closing) = (format!("{left}{conditions}{{ "), format!(" }}{right}"));
            self.insertions.around(whole, &opening, &closing);
        }
    }

    fn operands(&mut self, nest: &syn::ExprBinary) {
        for side in [&nest.left, &nest.right] {
            match &**side {
                syn::Expr::Binary(inner) => self.operands(inner),
                operand => self.visit_expr(operand),
            }
        }
    }
}

impl<'ast> Visit<'ast> for Sites<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() {
            self.function(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            self.function(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, nest: &'ast syn::ExprBinary) {
        if binds(nest) {
            // No operand of another expression: `if let Some(a) = b && a < c`.
            return visit::visit_expr_binary(self, nest);
        }
        // Which operands each operator has is decided by the text of the whole nest.
        self.expression(nest.span(), "BinaryOperator", &operators(nest));
        self.operands(nest);
    }

    fn visit_expr_match(&mut self, item: &'ast syn::ExprMatch) {
        let mut parts = Vec::new();
        for arm in &item.arms {
            parts.push(("MatchArm", arm.span()));
            if let Some((_, guard)) = &arm.guard {
                parts.push(("MatchArmGuard", guard.span()));
            }
        }
        let end = item.brace_token.span.close().byte_range().end;
        let whole = item.match_token.span.byte_range().start..end;
        // As a statement it has no semicolon behind it, and neither has `if`.
        self.alternatives(whole, &parts, ["", ""]);
        visit::visit_expr_match(self, item);
    }

    fn visit_expr_struct(&mut self, item: &'ast syn::ExprStruct) {
        // With the comma behind it.
        let fields: Vec<Span> = item.fields.pairs().map(|field| field.span()).collect();
        self.expression(item.span(), "StructField", &fields);
        visit::visit_expr_struct(self, item);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        self.expression(unary.span(), "UnaryOperator", &[unary.op.span()]);
        visit::visit_expr_unary(self, unary);
    }

    /// The length is a constant.
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    // Constants as well, and no expressions.
    fn visit_angle_bracketed_generic_arguments(
        &mut self,
        _: &'ast syn::AngleBracketedGenericArguments,
    ) {
    }
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
}

/// Whether a nest of operators has a `let` in it.
fn binds(nest: &syn::ExprBinary) -> bool {
    [&nest.left, &nest.right]
        .into_iter()
        .any(|side| match &**side {
            syn::Expr::Binary(inner) => binds(inner),
            operand => matches!(operand, syn::Expr::Let(_)),
        })
}

fn operators(nest: &syn::ExprBinary) -> Vec<Span> {
    let mut found = vec![nest.op.span()];
    for side in [&nest.left, &nest.right] {
        if let syn::Expr::Binary(inner) = &**side {
            found.extend(operators(inner));
        }
    }
    found
}
